
-- What is left of RELEASE and RESIGN.
local lock, base, attempt = KEYS[1], string.sub(KEYS[2], 1, -6), ARGV[1]
local now = server_time()
if mine then
  pass_on(lock, base, now, ARGV[2] and unseat(base, attempt))
  return 1
end
local group = group_of(base, redis.pcall('GET', lock))
if group and part(base, attempt) then
  regroup(lock, base, now, group, true)
  return 1
elseif not group then
  -- What is left of a group that has lost its lock.
  redis.call('DEL', base .. 'holders', base .. 'members')
end
dequeue(base, attempt)
settle(lock, base, now)
return 0
