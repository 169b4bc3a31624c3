-- MARK. KEYS: lock, done, floor. ARGV: attempt, mark, time to live in ms. Writes the mark of work
-- that is done, if the lock is the attempt's alone. Returns 1, or 0 if it is not.
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
