
-- DOWNGRADE. KEYS: lock, queue, floor. ARGV: attempt, token. Makes the attempt that holds the lock alone the
-- first member of a group, for as long as it would have held the lock, and lets in who fits beside it.
-- Answers 1, also if it was done before; 0 if the lock is not the attempt's.
local lock, base, attempt = KEYS[1], string.sub(KEYS[2], 1, -6), ARGV[1]
local now = server_time()
local value, group = settle(lock, base, now)
if group and member_token(base, attempt) then
  return 1
elseif value ~= attempt or last_token(base) > tonumber(ARGV[2]) then
  -- Not its, or its again by an upgrade since: a request that was on its way for long.
  return 0
end
local description = redis.call('HGET', base .. 'waiting', 'holder') or ''
description = string.sub(description, 1, #attempt) == attempt and string.sub(description, #attempt + 1)
local left = math.max(redis.call('PTTL', lock), 1)
redis.call('HDEL', base .. 'waiting', 'holder')
group = admit(lock, base, now, nil, attempt, left, 's', description or '', tonumber(ARGV[2]))
stretch(lock, base, now)
pump(lock, base, now, group)
return 1
