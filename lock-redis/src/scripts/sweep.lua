-- SWEEP. KEYS: lock, fence. ARGV: age in ms. Removes the fence of a lock that is free and was last
-- granted longer ago than that. Answers 1 if it was removed, else 0.
local time = redis.call('TIME')
local oldest = time[1] * 1000000 + time[2] - ARGV[1] * 1000
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
if last < oldest and redis.call('EXISTS', KEYS[1]) == 0 then
  return redis.call('DEL', KEYS[2])
end
return 0
