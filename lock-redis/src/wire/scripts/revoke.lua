
-- REVOKE. KEYS: lock, queue, floor. ARGV: the attempt without its client. Removes it, whoever's it is and
-- whether it holds or waits, tells its client, and lets in who fits then.
-- Answers 1 if there was such an attempt, else 0.
local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
local now = server_time()

local function is_victim(attempt)
  return type(attempt) == 'string' and string.sub(attempt, -33) == ':' .. ARGV[1]
end

local function victim_in(attempts)
  for _, attempt in ipairs(attempts) do
    if is_victim(attempt) then
      return attempt
    end
  end
end

local value, group = settle(lock, base, now)
if is_victim(value) then
  tell(lock, value, 'gone')
  pass_on(lock, base, now, unseat(base, value))
  return 1
end
local member = group and victim_in(redis.call('ZRANGE', base .. 'holders', 0, -1))
if member then
  tell(lock, member, 'gone')
  part(base, member)
  regroup(lock, base, now, group, true)
  return 1
end
local waiter = victim_in(redis.call('LRANGE', base .. 'queue', 0, -1))
if waiter then
  tell(lock, waiter, 'gone')
  dequeue(base, waiter)
  settle(lock, base, now)
  return 1
end
return 0
