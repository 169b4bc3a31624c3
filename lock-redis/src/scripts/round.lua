
-- ROUND: renews what is held, keeps alive what waits. KEYS: the lock of each attempt that holds alone,
-- then lock and queue of each other one; leaders are among these. ARGV: how many hold alone, then attempt and
-- TTL in ms of each.
-- It only updates: a late round must not revive what was cancelled.
-- Answers 1 (renewed) or 0 (gone) per attempt that holds alone, four numbers per other one: 0 (gone),
-- 1 (waits), 2 (waits, for a foreign holder) or 3 (holds); fence or token; after how many ms what is in
-- its way may be gone; 1 if it is the first.
local now = server_time()

local function renew(lock, attempt, ttl)
  if redis.pcall('GET', lock) ~= attempt then
    return 0
  end
  return redis.call('PEXPIRE', lock, ttl)
end

local function look(lock, base, attempt, ttl)
  local value, group = settle(lock, base, now)
  if value == attempt then
    redis.call('PEXPIRE', lock, ttl)
    redis.call('PEXPIRE', base .. 'leader', ttl)
    return 3, same_token(base, now), 0, 0
  end
  local token = group and member_token(base, attempt)
  if token then
    extend(lock, base, now, attempt, ttl)
    return 3, token, 0, 0
  end
  local record = redis.call('HGET', base .. 'waiting', attempt)
  if not record or not value then
    -- Free, and not its turn: somebody has deleted the queue.
    redis.call('HDEL', base .. 'waiting', attempt)
    vacate(lock, base, unseat(base, attempt), value)
    return 0, 0, 0, 0
  end
  if alive_until(record) <= now then
    -- Out of reach for a TTL: it is told so, and not revived, whether or not somebody has passed it.
    dequeue(base, attempt)
    return 0, 0, 0, 0
  end
  record = digits(now + ttl * 1000) .. string.sub(record, 17)
  redis.call('HSET', base .. 'waiting', attempt, record)
  local first = redis.call('LINDEX', base .. 'queue', 0) == attempt
  if first then
    keep(base)
  end
  return 1 + is_foreign(value, group), last_token(base),
    blocked_for(lock, base, now, attempt, group), first and 1 or 0
end

local held, answer = tonumber(ARGV[1]), {}
for i = 1, held do
  answer[i] = renew(KEYS[i], ARGV[2 * i], ARGV[2 * i + 1])
end
for i = 1, (#KEYS - held) / 2 do
  local key, argument, at = held + 2 * i - 1, 2 * (held + i), held + 4 * i - 3
  answer[at], answer[at + 1], answer[at + 2], answer[at + 3] = look(
    KEYS[key], string.sub(KEYS[key + 1], 1, -6), ARGV[argument], ARGV[argument + 1])
end
return answer
