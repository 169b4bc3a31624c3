-- READ: the state of a name. KEYS: lock, queue, floor. ARGV: `leader`, `all`, or `places` and
-- attempts. Returns
-- - the lock's value, unless it is a group's; its remaining ms; the fence;
-- - the holder's description;
-- - for `leader` the leader's token and value, if there is a leader;
-- - the token floor's offset to the server's time, unless its record is broken; the server's time;
-- - the members of a group, each with its end of life and its record; for `places` only one;
-- - the waiting attempts in order, each followed by its record; for `places` only the first if
--   there is no holder, so the cost does not grow with the queue;
-- - each attempt's place: 0 if it holds, -1 if it is not in the first 10,000 places of the queue.
--
-- An attempt that was not renewed for its TTL is left out, even if no script has removed it yet.
--@token record counter

local lock, base, what, LOOK = KEYS[1], string.sub(KEYS[2], 1, -6), ARGV[1], 10000
local all = what == 'all'
local holder = redis.pcall('GET', lock)
if type(holder) == 'table' then
  holder = 'a value of another type'
end
local group = group_of(base, holder)
holder = not group and holder

local function members()
  local found = {}
  local alive = redis.call('ZREVRANGEBYSCORE', base .. 'holders', '+inf', '(' .. digits(now),
    'WITHSCORES', 'LIMIT', 0, all and -1 or 1)
  if all and redis.call('EXISTS', base .. 'holders') == 0 then
    -- Lost, and nothing has revived it yet: see `revive`.
    local left = digits(now + math.max(redis.call('PTTL', lock), 1) * 1000)
    for _, attempt in ipairs(redis.call('HKEYS', base .. 'members')) do
      if attempt ~= 'group' and attempt ~= 'taken' then
        table.insert(alive, attempt)
        table.insert(alive, left)
      end
    end
  end
  for i = 1, #alive, 2 do
    table.insert(found, alive[i])
    table.insert(found, digits(alive[i + 1]))
    table.insert(found, redis.call('HGET', base .. 'members', alive[i]))
  end
  return found
end

local function waiters()
  local found = {}
  for _, attempt in ipairs(redis.call('LRANGE', base .. 'queue', 0, all and -1 or 0)) do
    local record = redis.call('HGET', base .. 'waiting', attempt)
    if record and alive_until(record) > now then
      table.insert(found, attempt)
      table.insert(found, record)
    end
  end
  return found
end

local ranks

-- The cost is bounded: for a few attempts LPOS searches the list in C code; for more, one read
-- serves all.
local function place_of(attempt)
  if holder == attempt or group and member_token(base, attempt) then
    return 0
  elseif #ARGV <= 9 then
    local index = redis.call('LPOS', base .. 'queue', attempt, 'MAXLEN', LOOK)
    return index and index + 1 or -1
  elseif not ranks then
    ranks = {}
    for i, waiter in ipairs(redis.call('LRANGE', base .. 'queue', 0, LOOK - 1)) do
      ranks[waiter] = i
    end
  end
  return ranks[attempt] or -1
end

local by, who, token, value =
  unpack(redis.call('HMGET', base .. 'leader', 'by', 'who', 'token', 'value'))
local leads = holder and by == holder
local well, record = pcall(floor)
local places = {}
for i = 2, #ARGV do
  places[i - 1] = place_of(ARGV[i])
end
return {holder, redis.call('PTTL', lock), redis.call('GET', base .. 'fence'),
  leads and who ~= '' and holder .. who or redis.call('HGET', base .. 'waiting', 'holder'),
  leads and what == 'leader' and {token, value},
  well and (unpack_floor(record or '0 0')), digits(now),
  group and what ~= 'leader' and members() or {},
  (all or what == 'places' and not holder and not group) and waiters() or {},
  places}
