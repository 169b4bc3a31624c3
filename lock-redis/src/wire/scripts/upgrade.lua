
-- UPGRADE. KEYS: lock, queue, floor. ARGV: attempt, token. Makes a member that is alone, and for whose lock
-- nobody waits, the only holder, for as long as it would have been a member.
-- Answers the new token, also if it was done before; 0 if somebody else holds or waits; -1 if the
-- attempt is no member.
local lock, base, attempt = KEYS[1], string.sub(KEYS[2], 1, -6), ARGV[1]
local now = server_time()
local value, group = settle(lock, base, now)
if value == attempt then
  return same_token(base, now)
end
local record = group and redis.call('HGET', base .. 'members', attempt)
if not record then
  return -1
end
local token, description = string.match(record, '^(%d+) s (.*)$')
if token ~= ARGV[2] or redis.call('ZCARD', base .. 'holders') ~= 1
  or redis.call('EXISTS', base .. 'queue') == 1 then
  return 0
end
local left = math.max(redis.call('PTTL', lock), 1)
token = next_token(base, now)
redis.call('DEL', base .. 'holders', base .. 'members')
redis.call('SET', lock, attempt, 'PX', left)
describe_holder(base, attempt, description)
return token
