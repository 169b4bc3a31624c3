-- ACQUIRE of several exclusive locks: of all, if each is free and has no waiters, or of none. KEYS:
-- lock and queue of each; floor. ARGV: attempt, TTL in ms, and the holder's description, empty if
-- it is the usual one, of each. Returns their tokens; 0 if one is busy.
--@token record counter leader group queue

local wishes, free = {}, true
for i = 1, (#KEYS - 1) / 2 do
  local lock, base, attempt = KEYS[2 * i - 1], string.sub(KEYS[2 * i], 1, -6), ARGV[3 * i - 2]
  local value = settle(lock, base)
  -- If it is the attempt's, this is the same request again: its answer was lost.
  local mine = value == attempt
  free = free and (mine or not value)
  wishes[i] = {lock, base, attempt, mine, ARGV[3 * i - 1], ARGV[3 * i]}
end
local tokens = {}
for i, wish in ipairs(wishes) do
  local lock, base, attempt, mine, ttl, text = unpack(wish)
  if free and mine then
    redis.call('PEXPIRE', lock, ttl)
    tokens[i] = tonumber(same_token(base))
  elseif free then
    tokens[i] = tonumber(grant(lock, base, attempt, ttl, 'x', text))
  elseif mine then
    -- Granted before with the others, but one of them was lost since.
    pass_on(lock, base)
  end
end
return free and tokens or 0
