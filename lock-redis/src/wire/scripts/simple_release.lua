-- RELEASE without a queue. KEYS: lock. ARGV: attempt. Answers 1 if the lock was the attempt's, else 0.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
