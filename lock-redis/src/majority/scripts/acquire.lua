-- Votes for an attempt if the node is free, or if it has voted for it already.
-- KEYS: lock, fence. ARGV: attempt, ballot, TTL in ms, candidate for the token, the new vote.
-- Returns {1, fence before} for a vote; {0, fence, ms left, the holder's vote} otherwise.
local fence = redis.call('get', KEYS[2])
local held = redis.pcall('get', KEYS[1])
-- A key of another type is a foreign client's lock.
held = type(held) == 'table' and '' or held
if held then
  local attempt, ballot = string.match(held, '^(%x+):(%d+):')
  -- A late request of an earlier ballot changes nothing.
  if attempt ~= ARGV[1] or tonumber(ballot) > tonumber(ARGV[2]) then
    return {0, fence or '0', redis.call('pttl', KEYS[1]), held}
  end
end
-- A script that fails half-way is not undone, so this stands before the first write.
local last = tonumber(fence or '0')
if not last then
  return redis.error_reply('ERR the last token is not a number')
end
redis.call('set', KEYS[1], ARGV[5], 'px', ARGV[3])
if tonumber(ARGV[4]) > last then
  -- Two days.
  redis.call('set', KEYS[2], ARGV[4], 'px', 172800000)
end
return {1, fence or '0'}
