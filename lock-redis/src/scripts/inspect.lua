-- INSPECT. KEYS: lock, queue, waiting, fence. Answers the lock's value, the fence, how the holder
-- describes itself, and the waiting attempts in order, each followed by its record.
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then
  holder = 'a value of another type'
end
local waiting = {}
for i, attempt in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  waiting[2 * i - 1] = attempt
  waiting[2 * i] = redis.call('HGET', KEYS[3], attempt) or ''
end
return {holder, redis.call('GET', KEYS[4]), redis.call('HGET', KEYS[3], 'holder'), waiting}
