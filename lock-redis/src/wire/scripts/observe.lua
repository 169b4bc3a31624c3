
-- OBSERVE. KEYS: lock, queue, floor. Answers the lock's value, unless it is a group's; how many ms it lives; the
-- fence; how a holder that does not lead describes itself; of the leader its token, version, what it says
-- about itself, and its value; and what the token floor adds to the time.
local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
local value = redis.pcall('GET', lock)
if type(value) == 'table' then
  value = 'a value of another type'
end
if group_of(base, value) then
  value = false
end
local leader =
  redis.call('HMGET', base .. 'leader', 'by', 'token', 'version', 'who', 'value')
local leads = value and leader[1] == value
return {value, redis.call('PTTL', lock), redis.call('GET', base .. 'fence'),
  redis.call('HGET', base .. 'waiting', 'holder'), leads and {unpack(leader, 2)} or false,
  shown_offset()}
