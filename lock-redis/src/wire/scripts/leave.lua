
-- Gives up whatever an attempt has: the lock, if it is `mine`, its membership, or its place in the queue.
-- Answers 1 if it held, else 0.
local function leave(lock, base, now, attempt, mine, leads)
  if mine then
    pass_on(lock, base, now, leads and unseat(base, attempt))
    return 1
  end
  local group = group_of(base, redis.pcall('GET', lock))
  if group and part(base, attempt) then
    regroup(lock, base, now, group, true)
    return 1
  elseif not group then
    -- What is left of a group that has lost its lock.
    redis.call('DEL', base .. 'holders', base .. 'members')
  end
  dequeue(base, attempt)
  settle(lock, base, now)
  return 0
end
