
local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
local attempt, ttl, description = ARGV[1], ARGV[2], ARGV[4]
local now = server_time()
local value, group
if free then
  if not pcall(floor) then
    redis.call('DEL', lock)
    return redis.error_reply('BROKENFLOOR')
  end
  -- Free, but others wait: nobody overtakes them.
  value, group = pump(lock, base, now)
else
  value, group = settle(lock, base, now)
end
if not value then
  -- None of them lives.
  local token = next_token(base, now)
  redis.call('SET', lock, attempt, 'PX', ttl)
  describe_holder(base, attempt, description)
  return token
elseif value == attempt then
  -- The same request again: its answer was lost.
  redis.call('PEXPIRE', lock, ttl)
  return same_token(base, now)
end
if ARGV[3] == '0' then
  return 0
end
local place = enqueue(base, attempt, ttl, 'x', description, now)
return waits(lock, base, now, attempt, place, value, group)
