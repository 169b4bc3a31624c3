
-- INSPECT. KEYS: lock, queue. Answers the lock's value, unless it is a group's; how many ms it lives; the
-- fence; how the holder describes itself; the members of a group, each with until when it is alive and its
-- record; the waiting attempts in order, each followed by its record; and the server's time. Who did not
-- say for its TTL that it is alive is not there any more, even if nobody has swept it up.
local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
local now = server_time()
local value = redis.pcall('GET', lock)
if type(value) == 'table' then
  value = 'a value of another type'
end
local members, waiting = {}, {}
if group_of(base, value) then
  value = false
  local alive = redis.call('ZRANGEBYSCORE', base .. 'holders', '(' .. digits(now), '+inf', 'WITHSCORES')
  if redis.call('EXISTS', base .. 'holders') == 0 then
    -- Lost, and nobody has revived it yet: see `revive`.
    local left = digits(now + math.max(redis.call('PTTL', lock), 1) * 1000)
    for _, attempt in ipairs(redis.call('HKEYS', base .. 'members')) do
      if attempt ~= 'group' and attempt ~= 'taken' then
        table.insert(alive, attempt)
        table.insert(alive, left)
      end
    end
  end
  for i = 1, #alive, 2 do
    table.insert(members, alive[i])
    table.insert(members, digits(alive[i + 1]))
    table.insert(members, redis.call('HGET', base .. 'members', alive[i]))
  end
end
for _, attempt in ipairs(redis.call('LRANGE', base .. 'queue', 0, -1)) do
  local record = redis.call('HGET', base .. 'waiting', attempt)
  if record and alive_until(record) > now then
    table.insert(waiting, attempt)
    table.insert(waiting, record)
  end
end
local leader = redis.call('HMGET', base .. 'leader', 'by', 'who')
local described = value and leader[1] == value and leader[2] ~= '' and value .. leader[2]
return {value, redis.call('PTTL', lock), redis.call('GET', base .. 'fence'),
  described or redis.call('HGET', base .. 'waiting', 'holder'), members, waiting, digits(now)}
