
-- Leaving.

-- Ends an attempt's leadership, if it leads. Returns the argument for `vacate`.
local function unseat(base, attempt)
  local by, database = unpack(redis.call('HMGET', base .. 'leader', 'by', 'database'))
  if by == attempt then
    redis.call('DEL', base .. 'leader')
    return database
  end
end

-- Removes an attempt from the queue, if it waits. Returns whether it was the first in line.
local function dequeue(base, attempt)
  local was_first = redis.call('LINDEX', base .. 'queue', 0) == attempt
  if redis.call('HDEL', base .. 'waiting', attempt) == 1 then
    redis.call('LREM', base .. 'queue', 1, attempt)
  end
  return was_first
end

-- Tells the first in line that it is, after another one was: it alone polls a foreign holder.
local function tell_first(lock, base, value, group)
  local first = is_foreign(value, group) and redis.call('LINDEX', base .. 'queue', 0)
  if first then
    tell(lock, first, 'first')
  end
end

-- Gives up the lock, if it is `mine`, or else the attempt's membership, or its place in the queue.
-- Returns 1 if it held, else 0.
local function leave(lock, base, attempt, mine, leads)
  if mine then
    pass_on(lock, base, leads and unseat(base, attempt))
    return 1
  end
  local group = group_of(base, redis.pcall('GET', lock))
  if group and part(base, attempt) then
    regroup(lock, base, group, true)
    return 1
  elseif not group then
    -- Remains of a group that has lost its lock.
    redis.call('DEL', base .. 'holders', base .. 'members')
  end
  local was_first = dequeue(base, attempt)
  local value, group = settle(lock, base)
  if was_first then
    tell_first(lock, base, value, group)
  end
  return 0
end
