-- ROUND: renews locks that are held, keeps alive attempts that wait. KEYS: the lock of each attempt
-- that holds alone, then lock and queue of each other one; leaders are among these; floor. ARGV:
-- how many hold alone, then attempt and TTL in ms of each of these, then attempt, TTL in ms, the
-- ms that it has at least if it holds, and number of earlier rounds of each other one. It only
-- updates: a late round must not revive an attempt that was cancelled. Returns 1 (renewed) or 0
-- (gone) per attempt that holds alone, four numbers per other one: 0 (gone), 1 (waits), 2 (the
-- script failed for its name, and not for all), 3 (holds), or less than 0 (waits for a foreign
-- holder, with this mark); fence or token; ms until the obstacle may be gone; 1 if it is the first.
local held, answer = tonumber(ARGV[1]), {}
for i = 1, held do
  local mine = redis.pcall('GET', KEYS[i]) == ARGV[2 * i]
  answer[i] = mine and redis.call('PEXPIRE', KEYS[i], ARGV[2 * i + 1]) or 0
end
if #KEYS == held + 1 then
  return answer
end
--@token record counter leader group queue leave wait

local PAGE = 32

-- Removes dead attempts from one page of a queue. Returns the first living one, and whether one
-- before it was removed.
local function bury(base, page)
  local queue, waiting = base .. 'queue', base .. 'waiting'
  local attempts = redis.call('LRANGE', queue, page * PAGE, page * PAGE + PAGE - 1)
  if #attempts < 2 then
    -- None, or only the attempt that asks.
    return attempts[1]
  end
  local first, dead, places = nil, {}, {}
  for i, record in ipairs(redis.call('HMGET', waiting, unpack(attempts))) do
    if record and alive_until(record) > now then
      first = first or attempts[i]
    else
      table.insert(dead, attempts[i])
      table.insert(places, page * PAGE + i - 1)
    end
  end
  if #dead > 0 then
    redis.call('HDEL', waiting, unpack(dead))
    for _, place in ipairs(places) do
      redis.call('LSET', queue, place, '')
    end
    redis.call('LREM', queue, 0, '')
  end
  return first, places[1] == page * PAGE
end

-- Makes the queue anew, after it was evicted or deleted: all that wait, in the order of their
-- arrival. The first write works without memory; once a script has written, its other writes do too.
local function requeue(base)
  local all, order = redis.call('HGETALL', base .. 'waiting'), {}
  for i = 1, #all, 2 do
    local since = string.match(all[i + 1], '^%d+ %d+ (%d+) ')
    if since and all[i] ~= 'holder' then
      table.insert(order, {since .. all[i], all[i]})
    end
  end
  table.sort(order, function(one, other) return one[1] < other[1] end)
  redis.call('DEL', base .. 'queue')
  for _, waiter in ipairs(order) do
    redis.call('RPUSH', base .. 'queue', waiter[2])
  end
end

-- Whether an attempt has a record in `waiting` and no place in `queue`.
local function lacks_places(base)
  local places = redis.call('LLEN', base .. 'queue')
  local records = redis.call('HLEN', base .. 'waiting')
  return records > places and records > places + redis.call('HEXISTS', base .. 'waiting', 'holder')
end

local firsts = {}

-- Returns the first in line of a queue. A living waiter asks, so the queue is kept. Dead attempts
-- are removed from the first page and from one other page, each round from the next one.
local function first_in_line(lock, base, attempt, round, value, group)
  if firsts[base] == nil then
    if lacks_places(base) then
      requeue(base)
    end
    keep_queue(base)
    local pages = math.ceil(redis.call('LLEN', base .. 'queue') / PAGE)
    if pages > 1 then
      bury(base, round % (pages - 1) + 1)
    end
    local first, is_new = bury(base, 0)
    if is_new and first ~= attempt then
      tell_first(lock, base, value, group)
    end
    firsts[base] = first or false
  end
  return firsts[base]
end

local function look(lock, base, attempt, ttl, least, round)
  local value, group = settle(lock, base)
  if not value and redis.call('HEXISTS', base .. 'waiting', attempt) == 1 then
    -- Free, though it waits: the queue was evicted or deleted.
    requeue(base)
    value, group = pump(lock, base)
  end
  if value == attempt then
    -- A check may be late: it takes no time that the holder's own renewal has given, which is a TTL
    -- at most. More comes of a clock that was set back.
    local left = math.min(math.max(redis.call('PTTL', lock), least), ttl)
    redis.call('PEXPIRE', lock, left)
    redis.call('PEXPIRE', base .. 'leader', left)
    return 3, tonumber(same_token(base)), 0, 0
  end
  local token = group and member_token(base, attempt)
  if token then
    extend(lock, base, attempt, ttl, least)
    return 3, tonumber(token), 0, 0
  end
  local record = redis.call('HGET', base .. 'waiting', attempt)
  if not record or not value then
    redis.call('HDEL', base .. 'waiting', attempt)
    vacate(lock, base, unseat(base, attempt))
    return 0, 0, 0, 0
  end
  if alive_until(record) <= now then
    -- Not renewed for a TTL: it is gone, and not revived, whether or not another attempt has passed
    -- it.
    if dequeue(base, attempt) then
      tell_first(lock, base, value, group)
    end
    firsts[base] = nil
    return 0, 0, 0, 0
  end
  -- First, because it works without memory; once a script has written, its other writes do too.
  local first = first_in_line(lock, base, attempt, round, value, group) == attempt
  local mark = foreign_mark(value, group)
  redis.call('HSET', base .. 'waiting', attempt, digits(now + ttl * 1000) .. string.sub(record, 17))
  return mark > 0 and -mark or 1, last_token(base),
    blocked_for(lock, base, attempt, value, group), first and 1 or 0
end

local others, failed, why = (#KEYS - 1 - held) / 2, 0, nil
for i = 1, others do
  local key, argument, at = held + 2 * i - 1, 2 * held + 4 * i - 2, held + 4 * i - 3
  local well, state, fence, pttl, first = pcall(look, KEYS[key], string.sub(KEYS[key + 1], 1, -6),
    ARGV[argument], ARGV[argument + 1], ARGV[argument + 2], ARGV[argument + 3])
  if not well then
    failed, why = failed + 1, state
    state, fence, pttl, first = 2, 0, 0, 0
  end
  answer[at], answer[at + 1], answer[at + 2], answer[at + 3] = state, fence, pttl, first
end
if held == 0 and failed == others then
  error(why)
end
return answer
