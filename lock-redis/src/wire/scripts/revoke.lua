-- REVOKE. KEYS: lock, queue, floor. ARGV: the attempt without its client. Removes the attempt, of
-- any client, whether it holds or waits. Notifies its client, and lets in the waiters that fit
-- then. Returns 1 if there was such an attempt, else 0.
--@token record counter leader group queue leave

local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
local function victim_in(attempts)
  for _, attempt in ipairs(attempts) do
    if type(attempt) == 'string' and string.sub(attempt, -33) == ':' .. ARGV[1] then
      return attempt
    end
  end
end

local value, group = settle(lock, base)
local victim = victim_in({value})
  or group and victim_in(redis.call('ZRANGE', base .. 'holders', 0, -1))
  or victim_in(redis.call('LRANGE', base .. 'queue', 0, -1))
if not victim then
  return 0
end
tell(lock, victim, 'gone')
leave(lock, base, victim, victim == value, true)
return 1
