
-- The queue: which attempts are let in, and what happens when one leaves.

-- Sends a push about an attempt to its client: a token, `gone`, or `first` (in line). It is a hint: a
-- client that misses it finds out by itself, so a refusal is no failure.
local function tell(lock, attempt, what)
  redis.pcall('PUBLISH', 'distlock:' .. string.sub(attempt, 1, 16),
    what .. ' ' .. string.sub(attempt, 18) .. ' ' .. lock)
end

-- Whether a lock with this value is held by a client that sends no push when it releases: any but
-- one of distlock with a queue. `group`: the value, if it is a group's.
local function is_foreign(value, group)
  return value and not group
    and not (type(value) == 'string' and #value == 49 and string.match(value, '^%x+:%x+$'))
end

-- Grants a lock that is free, or the caller's to give, to one attempt alone. Returns the token.
local function grant(lock, base, attempt, ttl, kind, text)
  local token = next_token(base)
  redis.call('SET', lock, attempt, 'PX', ttl)
  if kind ~= 'x' then
    local database, length = string.match(kind, '^e(%d+)/(%d+)$')
    seat(lock, base, attempt, ttl, token, 0, database,
      string.sub(text, 1, length), string.sub(text, length + 1))
  elseif text and text ~= '' then
    redis.call('HSET', base .. 'waiting', 'holder', attempt .. text)
    redis.call('PEXPIRE', base .. 'waiting', 172800000)
  end
  return token
end

-- Lets in living attempts from the head of the queue while they fit: into the group, or into a lock
-- that is free or the caller's to give. No attempt is overtaken. Returns the lock's value, nil if
-- it is free now, and the value once more if it is a group's.
--
-- The first write removes something: that works also when the server is out of memory, and once a
-- script has written, its other writes work too. So a hand-over never stops half-way.
local function pump(lock, base, group)
  local queue, waiting, entered = base .. 'queue', base .. 'waiting', false
  while true do
    local attempt = redis.call('LINDEX', queue, 0)
    if not attempt then
      break
    end
    floor()
    local record = redis.call('HGET', waiting, attempt)
    local ttl, kind, text
    if record and alive_until(record) > now then
      ttl, kind, text = string.match(record, WAITER)
    end
    if group and kind and not fits(base, group, kind) then
      break
    end
    redis.call('LPOP', queue)
    redis.call('HDEL', waiting, attempt, 'holder')
    if kind and string.find(kind, '^[xe]') then
      tell(lock, attempt, grant(lock, base, attempt, ttl, kind, text))
      return attempt
    elseif kind then
      local token = next_token(base)
      group = admit(lock, base, group, attempt, ttl, kind, text, token)
      entered = true
      tell(lock, attempt, token)
    end
  end
  if entered then
    stretch(lock, base)
  end
  return group, group
end

-- Passes on a lock that is the caller's to give, or frees it; announces the end of a leadership in
-- this database, if there was one. Returns the same as `pump`.
local function pass_on(lock, base, database)
  local value, group = pump(lock, base)
  if not value then
    redis.call('DEL', lock, base .. 'waiting')
  end
  vacate(lock, base, database)
  return value, group
end

-- Ends the members that have expired, and lets in the waiters that fit then. `left`: members have
-- just left. When the last one leaves, the lock is handed over or freed. Returns the same as
-- `pump`.
local function regroup(lock, base, group, left)
  if redis.call('EXISTS', base .. 'holders') == 0 then
    revive(lock, base)
  end
  local expired = redis.call('ZRANGEBYSCORE', base .. 'holders', '-inf', digits(now))
  for _, attempt in ipairs(expired) do
    part(base, attempt)
    left = true
  end
  if left and redis.call('EXISTS', base .. 'holders') == 0 then
    redis.call('DEL', base .. 'members')
    return pass_on(lock, base)
  elseif left then
    stretch(lock, base)
  end
  return pump(lock, base, group)
end

-- Brings a name up to date. Returns the same as `pump`.
local function settle(lock, base)
  local value = redis.pcall('GET', lock)
  if not value then
    -- Nothing is written unless an attempt waits: a server that is full refuses a script's first
    -- write.
    if redis.call('EXISTS', base .. 'queue') == 1 then
      return pump(lock, base)
    end
    return nil
  end
  local group = group_of(base, value)
  if group then
    return regroup(lock, base, group)
  end
  return value
end
