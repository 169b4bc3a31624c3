-- INSPECT. KEYS: lock, queue, waiting, fence. Answers the lock's value, the fence, how the holder
-- describes itself, and the waiting attempts in order, each followed by its record. A waiter that did
-- not say for its TTL that it is alive is not in the queue any more, even if nobody has swept it up.
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then
  holder = 'a value of another type'
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local waiting = {}
for _, attempt in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  local record = redis.call('HGET', KEYS[3], attempt)
  if record and tonumber(string.sub(record, 1, 16)) > now then
    table.insert(waiting, attempt)
    table.insert(waiting, record)
  end
end
return {holder, redis.call('GET', KEYS[4]), redis.call('HGET', KEYS[3], 'holder'), waiting}
