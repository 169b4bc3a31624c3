-- RELEASE of many without a queue. KEYS: locks. ARGV: the attempt of each. Answers 1 for each.
local answer = {}
for i, lock in ipairs(KEYS) do
  if redis.pcall('GET', lock) == ARGV[i] then
    redis.call('DEL', lock)
  end
  answer[i] = 1
end
return answer
