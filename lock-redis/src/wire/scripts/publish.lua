-- PUBLISH. KEYS: lock, queue, floor. ARGV: attempt, version, database, value. Sets the leader's
-- value. The leader counts versions: a version that is not newer than the last one is not published
-- again. Returns 1, also if it was done before; 0 if the lock is not the attempt's.
--@token record counter leader

local lock, base, attempt = KEYS[1], string.sub(KEYS[2], 1, -6), ARGV[1]
if redis.pcall('GET', lock) ~= attempt then
  return 0
end
local by, token, version, who =
  unpack(redis.call('HMGET', base .. 'leader', 'by', 'token', 'version', 'who'))
if by ~= attempt then
  -- The leader's hash was deleted.
  token, version, who = same_token(base), -1, ''
end
if tonumber(version) < tonumber(ARGV[2]) then
  seat(lock, base, attempt, redis.call('PTTL', lock), token, ARGV[2], ARGV[3], who, ARGV[4])
end
return 1
