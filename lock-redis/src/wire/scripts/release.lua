-- RELEASE of a held lock, CANCEL of a waiting attempt. KEYS: lock, queue; waiting, if the holder
-- described itself; floor. ARGV: attempt. Answers 1 if the lock was the attempt's, else 0.
local mine = redis.pcall('GET', KEYS[1]) == ARGV[1]
if mine and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1])
  if KEYS[4] then
    redis.call('DEL', KEYS[3])
  end
  return 1
end
