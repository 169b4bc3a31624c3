
-- Groups: readers, or holders of permits, that hold a lock together. While a group has members, the
-- lock's key has its value: `s:<id>`, or `p<limit>:<id>`. The members hold only while the key has
-- exactly that value, so a key that was evicted, deleted or overwritten ends them all.
--
-- `holders` (a sorted set) has the time until which each member is alive. `members` (a hash) has
-- each member's record, the `group`'s value, and the number of permits that are `taken`. All three
-- keys live as long as the longest-lived member.

local function fits(base, group, kind)
  local weight, limit = permits(kind)
  if not weight then
    return kind == 's' and string.sub(group, 1, 2) == 's:'
  end
  return string.match(group, '^p(%d+):') == limit
    and redis.call('HGET', base .. 'members', 'taken') + weight <= tonumber(limit)
end

-- Makes an attempt a member; of a new group, if there is none. The caller must call `stretch` next.
local function admit(lock, base, group, attempt, ttl, kind, text, token)
  local holders, members = base .. 'holders', base .. 'members'
  local weight, limit = permits(kind)
  local record = token .. ' ' .. kind .. ' ' .. (text or '')
  if group then
    redis.call('HSET', members, attempt, record)
    if weight then
      redis.call('HINCRBY', members, 'taken', weight)
    end
  else
    group = (limit and 'p' .. limit or 's') .. ':' .. token
    redis.call('DEL', holders, members)
    redis.call('SET', lock, group, 'PX', ttl)
    redis.call('HSET', members, 'group', group, 'taken', weight or 0, attempt, record)
  end
  redis.call('ZADD', holders, digits(now + ttl * 1000), attempt)
  return group
end

-- Makes the group's keys live as long as its longest-lived member, which must be alive.
local function stretch(lock, base)
  local last = redis.call('ZRANGE', base .. 'holders', -1, -1, 'WITHSCORES')[2]
  local left = math.ceil((last - now) / 1000)
  for _, key in ipairs({lock, base .. 'holders', base .. 'members'}) do
    redis.call('PEXPIRE', key, left)
  end
end

-- Renews a member. With less than its TTL as `least` it is a check, which takes no time from it.
local function extend(lock, base, attempt, ttl, least)
  -- First, because it works without memory; once a script has written, its other writes do too.
  redis.call('PEXPIRE', lock, ttl)
  local alive = now + ttl * 1000
  if least ~= ttl then
    local present = redis.call('ZSCORE', base .. 'holders', attempt) or 0
    alive = math.min(math.max(present, now + least * 1000), alive)
  end
  redis.call('ZADD', base .. 'holders', digits(alive), attempt)
  stretch(lock, base)
end

-- Ends a membership. Returns whether there was one.
local function part(base, attempt)
  local members = base .. 'members'
  local record = redis.call('HGET', members, attempt)
  redis.call('ZREM', base .. 'holders', attempt)
  if not record then
    return false
  end
  local _, kind = string.match(record, MEMBER)
  local weight = permits(kind)
  redis.call('HDEL', members, attempt)
  if weight then
    redis.call('HINCRBY', members, 'taken', -weight)
  end
  return true
end

-- Makes `holders` anew, after it was evicted or deleted. Then the end of each member's life is
-- unknown. So, until its next renewal, each lives as long as the lock, which lives as long as the
-- longest-lived member.
local function revive(lock, base)
  if redis.call('HLEN', base .. 'members') == 2 then
    -- Only `group` and `taken` are left: the last member is out.
    return
  end
  -- Removes nothing, but works without memory; once a script has written, its other writes do too.
  redis.call('DEL', base .. 'holders')
  local alive = digits(now + math.max(redis.call('PTTL', lock), 1) * 1000)
  for _, attempt in ipairs(redis.call('HKEYS', base .. 'members')) do
    if attempt ~= 'group' and attempt ~= 'taken' then
      redis.call('ZADD', base .. 'holders', alive, attempt)
    end
  end
  stretch(lock, base)
end
