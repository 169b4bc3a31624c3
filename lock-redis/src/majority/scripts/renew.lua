-- Lets an attempt's vote last for one more TTL. Never makes a vote.
-- KEYS: lock, fence. ARGV: attempt, TTL in ms.
-- Returns {1, fence} if the vote is there; {0} if the node is free, {-1} if another has its vote.
local held = redis.pcall('get', KEYS[1])
if not held then
  return {0}
end
if type(held) == 'table' or string.sub(held, 1, #ARGV[1] + 1) ~= ARGV[1] .. ':' then
  return {-1}
end
redis.call('pexpire', KEYS[1], ARGV[2])
-- The token stays for a day at least after the lock is free.
if redis.call('pttl', KEYS[2]) < 86400000 + tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[2], 172800000)
end
return {1, redis.call('get', KEYS[2]) or '0'}
