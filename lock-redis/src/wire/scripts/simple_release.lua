-- RELEASE without a queue, of one or of many. KEYS: locks. ARGV: the attempt of each. Returns for
-- one 1 if the lock was the attempt's, else 0; for many 1 for each.
if not KEYS[2] then
  return redis.pcall('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0
end
local answer = {}
for i, lock in ipairs(KEYS) do
  if redis.pcall('GET', lock) == ARGV[i] then
    redis.call('DEL', lock)
  end
  answer[i] = 1
end
return answer
