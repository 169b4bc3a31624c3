-- ACQUIRE without a queue. KEYS: lock, fence, floor. ARGV: attempt, TTL in ms. Returns the token,
-- or the number 0 if the lock is held.
--@token
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
    return 0
  end
  -- The same request again: its answer was lost.
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local token = new_token(KEYS[2], redis.call('TIME'), redis.pcall('GET', KEYS[3]))
if not token then
  redis.call('DEL', KEYS[1])
  return redis.error_reply('BROKENFLOOR')
end
return token
