
local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
local attempt, ttl, description = ARGV[1], ARGV[2], ARGV[4] or ''
local now = server_time()
local holder
if free then
  -- Free, but others wait: nobody overtakes them. If none of them lives, the key set above stays.
  local first, token = hand_over(lock, base, now)
  if not first then
    describe_holder(base, attempt, description)
    return next_token(base, now)
  elseif first == attempt then
    return token
  end
  holder = first
else
  holder = redis.pcall('GET', lock)
  if holder == attempt then
    -- The same request again: its answer was lost.
    redis.call('PEXPIRE', lock, ttl)
    return same_token(base, now)
  end
end
if ARGV[3] == '0' then
  return 0
end

local alive = digits(now + ttl * 1000)
local record = redis.call('HGET', base .. 'waiting', attempt)
local place
if record then
  redis.call('HSET', base .. 'waiting', attempt, alive .. string.sub(record, 17))
  place = (redis.call('LPOS', base .. 'queue', attempt) or 0) + 1
else
  record = table.concat({alive, ttl, digits(now), description}, ' ')
  redis.call('HSET', base .. 'waiting', attempt, record)
  place = redis.call('RPUSH', base .. 'queue', attempt)
end
if place == 1 then
  keep(base)
end
return {last_token(base), redis.call('PTTL', lock), place, is_foreign(holder)}
