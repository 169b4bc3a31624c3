-- ACQUIRE without a queue. KEYS: lock, fence, floor. ARGV: attempt, TTL in ms.
-- Answers the token, or the number 0 if somebody holds the lock.
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
    return 0
  end
  -- The same request again: its answer was lost.
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local time = redis.call('TIME')
-- As text, which costs less than a number, and compares like one: 16 digits until the year 2286.
local token = time[1] .. string.sub('00000' .. time[2], -6)
local floor = redis.pcall('GET', KEYS[3])
if floor then
  local offset, above = string.match(type(floor) == 'string' and floor or '', '^(%d+) (%d+)$')
  if not offset then
    redis.call('DEL', KEYS[1])
    return redis.error_reply('BROKENFLOOR')
  end
  token = string.format('%.0f', math.max(token + offset, above + 1))
end
local last = redis.call('SET', KEYS[2], token, 'PX', 86400000, 'GET')
if last and last >= token then
  token = string.format('%.0f', last + 1)
  redis.call('SET', KEYS[2], token, 'PX', 86400000)
end
return token
