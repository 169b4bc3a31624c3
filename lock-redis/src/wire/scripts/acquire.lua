-- ACQUIRE. KEYS: lock, queue, fence, floor. ARGV: attempt, TTL in ms; then, if they are not the usual ones,
-- 1 to wait or 0 to try, and what the holder says about itself.
-- Answers the token; 0 if it is busy; {fence, holder's PTTL, place in the queue, mark of a foreign holder or 0}
-- if it waits.
--
-- The first lines are all that runs when nobody is in the way: every call and argument here costs.
local free = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if free and redis.call('EXISTS', KEYS[2]) == 0 then
  local time = redis.call('TIME')
  -- As text, which costs less than a number, and compares like one: 16 digits until the year 2286.
  local token = time[1] .. string.sub('00000' .. time[2], -6)
  local floor = redis.pcall('GET', KEYS[4])
  if floor then
    local offset, above = string.match(type(floor) == 'string' and floor or '', '^(%d+) (%d+)$')
    if not offset then
      redis.call('DEL', KEYS[1])
      return redis.error_reply('BROKENFLOOR')
    end
    token = string.format('%.0f', math.max(token + offset, above + 1))
  end
  local last = redis.call('SET', KEYS[3], token, 'PX', 86400000, 'GET')
  if last and last >= token then
    token = string.format('%.0f', last + 1)
    redis.call('SET', KEYS[3], token, 'PX', 86400000)
  end
  if ARGV[4] then
    local waiting = string.sub(KEYS[2], 1, -6) .. 'waiting'
    redis.call('HSET', waiting, 'holder', ARGV[1] .. ARGV[4])
    redis.call('PEXPIRE', waiting, 172800000)
  end
  return token
end
