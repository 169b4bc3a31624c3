
-- Those who hold a lock together: readers, or holders of permits. While there are any, the lock's key
-- has their group's value: `s:<id>`, or `p<limit>:<id>`. They hold only while it has that very value, so
-- a key that was evicted, deleted or overwritten ends them all.
--
-- `holders` (a sorted set) tells until when each member is alive; `members` (a hash) each one's token, kind
-- and description, the `group`'s value, and how many permits are `taken`. All three keys live as
-- long as the longest-lived member.

-- The lock's value, if it is that of a group.
local function group_of(base, value)
  if type(value) == 'string' and string.find(value, '^[sp]%d*:%d+$')
    and redis.call('HGET', base .. 'members', 'group') == value then
    return value
  end
end

-- The token of a member; nil if the attempt is none.
local function member_token(base, attempt)
  local record = redis.call('HGET', base .. 'members', attempt)
  return record and tonumber(string.match(record, '^%d+')) or nil
end

local function fits(base, group, kind)
  local weight, limit = string.match(kind, '^p(%d+)/(%d+)$')
  if not weight then
    return kind == 's' and string.sub(group, 1, 2) == 's:'
  end
  return string.match(group, '^p(%d+):') == limit
    and redis.call('HGET', base .. 'members', 'taken') + weight <= tonumber(limit)
end

-- Makes an attempt a member; of a new group, if there is none. To be followed by `stretch`.
local function admit(lock, base, now, group, attempt, ttl, kind, holder, token)
  local holders, members = base .. 'holders', base .. 'members'
  local weight, limit = string.match(kind, '^p(%d+)/(%d+)$')
  local record = digits(token) .. ' ' .. kind .. ' ' .. (holder or '')
  if group then
    redis.call('HSET', members, attempt, record)
    if weight then
      redis.call('HINCRBY', members, 'taken', weight)
    end
  else
    group = (limit and 'p' .. limit or 's') .. ':' .. digits(token)
    redis.call('DEL', holders, members)
    redis.call('SET', lock, group, 'PX', ttl)
    redis.call('HSET', members, 'group', group, 'taken', weight or 0, attempt, record)
  end
  redis.call('ZADD', holders, digits(now + ttl * 1000), attempt)
  return group
end

-- Has the group's keys live as long as its longest-lived member, who must be alive.
local function stretch(lock, base, now)
  local last = redis.call('ZRANGE', base .. 'holders', -1, -1, 'WITHSCORES')[2]
  local left = math.ceil((last - now) / 1000)
  for _, key in ipairs({lock, base .. 'holders', base .. 'members'}) do
    redis.call('PEXPIRE', key, left)
  end
end

local function extend(lock, base, now, attempt, ttl)
  -- First, because it works without memory; once a script has written, its other writes do too.
  redis.call('PEXPIRE', lock, ttl)
  redis.call('ZADD', base .. 'holders', digits(now + ttl * 1000), attempt)
  stretch(lock, base, now)
end

-- Ends a membership. Answers whether there was one.
local function part(base, attempt)
  local members = base .. 'members'
  local record = redis.call('HGET', members, attempt)
  redis.call('ZREM', base .. 'holders', attempt)
  if not record then
    return false
  end
  local weight = string.match(record, '^%d+ p(%d+)/')
  redis.call('HDEL', members, attempt)
  if weight then
    redis.call('HINCRBY', members, 'taken', -weight)
  end
  return true
end

-- Lets in from the head of the queue whoever is alive and fits: into the group, or into a lock that is
-- free or the caller's to give. Nobody is overtaken. Answers the lock's value, nil if nobody holds
-- it now, and the same once more if it is a group's.
--
-- The first write removes something: that works also when the server is out of memory, and once a
-- script has written, its other writes do too. So a hand-over never stops half-way.
local function pump(lock, base, now, group)
  local queue, waiting, entered = base .. 'queue', base .. 'waiting', false
  while true do
    local attempt = redis.call('LINDEX', queue, 0)
    if not attempt then
      break
    end
    floor()
    local record = redis.call('HGET', waiting, attempt)
    local ttl, kind, holder
    if record and alive_until(record) > now then
      ttl, kind, holder = string.match(record, '^%d+ (%d+) %d+ (%S+) (.*)$')
    end
    if group and kind and not fits(base, group, kind) then
      break
    end
    redis.call('LPOP', queue)
    redis.call('HDEL', waiting, attempt, 'holder')
    if kind == 'x' or kind and string.sub(kind, 1, 1) == 'e' then
      local token = next_token(base, now)
      redis.call('SET', lock, attempt, 'PX', ttl)
      if kind == 'x' then
        describe_holder(base, attempt, holder)
      else
        elect(lock, base, attempt, ttl, token, kind, holder)
      end
      tell(lock, attempt, digits(token))
      return attempt
    elseif kind then
      local token = next_token(base, now)
      group = admit(lock, base, now, group, attempt, ttl, kind, holder, token)
      entered = true
      tell(lock, attempt, digits(token))
    end
  end
  if entered then
    stretch(lock, base, now)
  end
  return group, group
end

-- Passes on a lock that is the caller's to give, or frees it; says that `leader` is none any more.
local function pass_on(lock, base, now, leader)
  local value = pump(lock, base, now)
  if not value then
    redis.call('DEL', lock, base .. 'waiting')
  end
  vacate(lock, base, leader, value)
end

-- Without `holders`, which was evicted or deleted, nobody knows how long each member is alive: each is as
-- long as the lock, which lives as long as the longest-lived, unless it says so anew.
local function revive(lock, base, now)
  local holders, members = base .. 'holders', base .. 'members'
  if redis.call('HLEN', members) == 2 then
    -- The group and what is taken: the last one is out.
    return
  end
  -- Removes nothing, but works without memory; once a script has written, its other writes do too.
  redis.call('DEL', holders)
  local alive = digits(now + math.max(redis.call('PTTL', lock), 1) * 1000)
  for _, attempt in ipairs(redis.call('HKEYS', members)) do
    if attempt ~= 'group' and attempt ~= 'taken' then
      redis.call('ZADD', holders, alive, attempt)
    end
  end
  stretch(lock, base, now)
end

-- Ends the members that have expired, and lets in who fits then. `left` if some have just left. The last
-- one out hands the lock over, or frees it. Answers what `pump` does.
local function regroup(lock, base, now, group, left)
  if redis.call('EXISTS', base .. 'holders') == 0 then
    revive(lock, base, now)
  end
  local expired = redis.call('ZRANGEBYSCORE', base .. 'holders', '-inf', digits(now))
  for _, attempt in ipairs(expired) do
    part(base, attempt)
    left = true
  end
  if left and redis.call('EXISTS', base .. 'holders') == 0 then
    redis.call('DEL', base .. 'members')
    local value, next_group = pump(lock, base, now)
    if not value then
      redis.call('DEL', lock, base .. 'waiting')
    end
    return value, next_group
  elseif left then
    stretch(lock, base, now)
  end
  return pump(lock, base, now, group)
end

-- Brings a name up to date. Answers what `pump` does.
local function settle(lock, base, now)
  local value = redis.pcall('GET', lock)
  if not value then
    -- Nothing is written unless somebody waits: a server that is full refuses a script's first write.
    if redis.call('EXISTS', base .. 'queue') == 1 then
      return pump(lock, base, now)
    end
    return nil
  end
  local group = group_of(base, value)
  if group then
    return regroup(lock, base, now, group)
  end
  return value
end

-- In how many ms what is in an attempt's way ends, unless it is renewed: the first member to expire, or
-- the waiter at the head, behind whom somebody else may fit.
local function blocked_for(lock, base, now, attempt, group)
  local ends = group and tonumber(redis.call('ZRANGE', base .. 'holders', 0, 0, 'WITHSCORES')[2])
  if not ends then
    return redis.call('PTTL', lock)
  end
  local first = redis.call('LINDEX', base .. 'queue', 0)
  local record = first and first ~= attempt and redis.call('HGET', base .. 'waiting', first)
  if record then
    ends = math.min(ends, alive_until(record))
  end
  return math.ceil((ends - now) / 1000)
end

-- 0 if the holder is a client of distlock (with a queue). Else its release tells nobody, and the number
-- tells it from another such holder.
local function foreign_mark(value, group)
  if group or type(value) == 'string' and #value == 49 and string.match(value, '^%x+:%x+$') then
    return 0
  end
  return type(value) == 'string' and 1 + tonumber(string.sub(redis.sha1hex(value), 1, 8), 16) or 1
end

-- What ACQUIRE and JOIN answer to an attempt that waits.
local function waits(lock, base, now, attempt, place, value, group)
  return {last_token(base), blocked_for(lock, base, now, attempt, group), place,
    foreign_mark(value, group)}
end
