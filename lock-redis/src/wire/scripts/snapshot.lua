
-- What a look at a name tells: the lock's value, unless it is a group's; how many ms it lives; the fence; how
-- the holder describes itself; the members of a group, each with until when it is alive and its record; the
-- waiting attempts in order, each followed by its record; the server's time; and what the token floor adds to
-- it. Who did not say for its
-- TTL that it is alive is not there any more, even if nothing has swept it up.
--
-- `whole`: all members and waiters. Else one member, and the first waiter if there is no holder, so the
-- cost does not grow with the queue.

local function members_of(lock, base, now, whole)
  local holders, members, found = base .. 'holders', base .. 'members', {}
  local limit = whole and -1 or 1
  local alive = redis.call('ZREVRANGEBYSCORE', holders, '+inf', '(' .. digits(now),
    'WITHSCORES', 'LIMIT', 0, limit)
  if whole and redis.call('EXISTS', holders) == 0 then
    -- Lost, and nothing has revived it yet: see `revive`.
    local left = digits(now + math.max(redis.call('PTTL', lock), 1) * 1000)
    for _, attempt in ipairs(redis.call('HKEYS', members)) do
      if attempt ~= 'group' and attempt ~= 'taken' then
        table.insert(alive, attempt)
        table.insert(alive, left)
      end
    end
  end
  for i = 1, #alive, 2 do
    table.insert(found, alive[i])
    table.insert(found, digits(alive[i + 1]))
    table.insert(found, redis.call('HGET', members, alive[i]))
  end
  return found
end

local function waiters_of(base, now, last)
  local found = {}
  for _, attempt in ipairs(redis.call('LRANGE', base .. 'queue', 0, last)) do
    local record = redis.call('HGET', base .. 'waiting', attempt)
    if record and alive_until(record) > now then
      table.insert(found, attempt)
      table.insert(found, record)
    end
  end
  return found
end

local function snapshot(lock, base, now, whole)
  local value = redis.pcall('GET', lock)
  if type(value) == 'table' then
    value = 'a value of another type'
  end
  local group, members, waiting = group_of(base, value), {}, {}
  if group then
    members = members_of(lock, base, now, whole)
    value = false
  end
  if whole or not (value or group) then
    waiting = waiters_of(base, now, whole and -1 or 0)
  end
  local leader = redis.call('HMGET', base .. 'leader', 'by', 'who')
  local described = value and leader[1] == value and leader[2] ~= '' and value .. leader[2]
  return {value, redis.call('PTTL', lock), redis.call('GET', base .. 'fence'),
    described or redis.call('HGET', base .. 'waiting', 'holder'), members, waiting, digits(now),
    shown_offset()}, group
end
