
-- CAMPAIGN: ACQUIRE of a lock by a candidate. KEYS: lock, queue, floor. ARGV: attempt, TTL in ms, 1 to wait or 0 to
-- try, kind, and what it says about itself, followed by its value. Answers as ACQUIRE does.
local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
local attempt, ttl, kind, said = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local now = server_time()
local value, group = settle(lock, base, now)
if not value then
  local token = next_token(base, now)
  redis.call('SET', lock, attempt, 'PX', ttl)
  elect(lock, base, attempt, ttl, token, kind, said)
  return token
elseif value == attempt then
  -- The same request again: its answer was lost.
  redis.call('PEXPIRE', lock, ttl)
  redis.call('PEXPIRE', base .. 'leader', ttl)
  return same_token(base, now)
end
if ARGV[3] == '0' then
  return 0
end
local place = enqueue(base, attempt, ttl, kind, said, now)
return waits(lock, base, now, attempt, place, value, group)
