
-- ACQUIRE of several exclusive locks: of all, if each is free and nobody waits for it, or of none. KEYS: lock
-- and queue of each; floor. ARGV: attempt, TTL in ms, and what the holder says about itself, if it is not the
-- usual, of each. Answers their tokens; 0 if one is busy.
local now, wishes, free = server_time(), {}, true
for i = 1, (#KEYS - 1) / 2 do
  local lock, base, attempt = KEYS[2 * i - 1], string.sub(KEYS[2 * i], 1, -6), ARGV[3 * i - 2]
  local value = settle(lock, base, now)
  -- The same request again, if it is the attempt's: its answer was lost.
  local mine = value == attempt
  free = free and (mine or not value)
  wishes[i] = {lock, base, attempt, mine, ARGV[3 * i - 1], ARGV[3 * i]}
end
local tokens = {}
for i, wish in ipairs(wishes) do
  local lock, base, attempt, mine, ttl, holder = unpack(wish)
  if not free then
    if mine then
      -- Granted with the others before, one of which was lost since.
      pass_on(lock, base, now)
    end
  elseif mine then
    redis.call('PEXPIRE', lock, ttl)
    tokens[i] = same_token(base, now)
  else
    tokens[i] = next_token(base, now)
    redis.call('SET', lock, attempt, 'PX', ttl)
    describe_holder(base, attempt, holder)
  end
end
return free and tokens or 0
