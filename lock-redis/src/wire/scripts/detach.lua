-- DETACH of a lock that is held alone, and its ADOPT. KEYS: lock, fence, waiting, floor.
-- ARGV: the attempt that has it, the one that is to have it, TTL in ms, token; to adopt, also the
-- new holder's description, or an empty one. Returns 1; 0 if no attempt has this grant any more;
-- -1 if another attempt has it; -2 if the token floor is as high as its token: a raise that looks
-- for it would not find it under the next name.
--
-- A repeated request finds its own effect, and renews it.
--@token
local value, last = redis.pcall('GET', KEYS[1]), redis.call('GET', KEYS[2])
if value ~= ARGV[1] and value ~= ARGV[2] then
  return value and last == ARGV[4] and -1 or 0
end
if value == ARGV[1] then
  local _, above = unpack_floor(redis.pcall('GET', KEYS[4]) or '0 0')
  if not above then
    return redis.error_reply('BROKENFLOOR')
  elseif tonumber(above) >= tonumber(ARGV[4]) then
    return -2
  end
end
-- First, because it works without memory; once a script has written, its other writes do too.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
-- The fence lives a day from now, as after a grant.
redis.call('SET', KEYS[2], last or ARGV[4], 'PX', 86400000)
if value == ARGV[1] then
  local holder = redis.call('HGET', KEYS[3], 'holder')
  local text = holder and string.sub(holder, 1, #value) == value and string.sub(holder, #value + 1)
  text = ARGV[5] or text
  if text and text ~= '' then
    redis.call('HSET', KEYS[3], 'holder', ARGV[2] .. text)
    redis.call('PEXPIRE', KEYS[3], 172800000)
  elseif holder then
    redis.call('HDEL', KEYS[3], 'holder')
  end
end
return 1
