
-- Leaving.

-- Ends an attempt's leadership, if it leads. Answers what `vacate` is to be told.
local function unseat(base, attempt)
  local leader = redis.call('HMGET', base .. 'leader', 'by', 'database', 'token')
  if leader[1] == attempt then
    redis.call('DEL', base .. 'leader')
    return leader
  end
end

-- Removes a waiting attempt, if it is one.
local function dequeue(base, attempt)
  if redis.call('HDEL', base .. 'waiting', attempt) == 1 then
    redis.call('LREM', base .. 'queue', 1, attempt)
  end
end

-- Gives up whatever an attempt has: the lock, if it is `mine`, its membership, or its place in the
-- queue. Answers 1 if it held, else 0.
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
    -- What is left of a group that has lost its lock.
    redis.call('DEL', base .. 'holders', base .. 'members')
  end
  dequeue(base, attempt)
  settle(lock, base)
  return 0
end
