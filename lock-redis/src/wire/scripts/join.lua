
-- JOIN: ACQUIRE of a shared lock or of permits. KEYS: lock, queue, floor. ARGV: attempt, TTL in ms, 1 to wait
-- or 0 to try, kind, and, if it is not the usual one, what the holder says about itself.
-- Answers as ACQUIRE does, and minus the number of permits that others count with if it is another one.
local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
local attempt, ttl, kind, description = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local now = server_time()

-- The number of permits that those who are alive count with. They all named the same, so one of
-- them is enough, and the last in line is often one.
local function limit_in_use(group)
  local place = -1
  while true do
    local last = redis.call('LINDEX', base .. 'queue', place)
    if not last then
      return group and string.match(group, '^p(%d+):')
    end
    local record = redis.call('HGET', base .. 'waiting', last)
    local limit = record and string.match(record, '^%d+ %d+ %d+ p%d+/(%d+) ')
    if limit and alive_until(record) > now then
      return limit
    end
    place = place - 1
  end
end

local value, group = settle(lock, base, now)
local token = group and member_token(base, attempt)
if token then
  -- The same request again: its answer was lost.
  extend(lock, base, now, attempt, ttl)
  return token
end
local limit = value and string.match(kind, '^p%d+/(%d+)$')
local other = limit and limit_in_use(group)
if other and other ~= limit and redis.call('HEXISTS', base .. 'waiting', attempt) == 0 then
  return -other
end
-- Whoever is in the queue now is alive, or behind somebody who is, or all wait for another holder.
if not value or group and redis.call('EXISTS', base .. 'queue') == 0 and fits(base, group, kind) then
  token = next_token(base, now)
  admit(lock, base, now, group, attempt, ttl, kind, description, token)
  stretch(lock, base, now)
  return token
end
if ARGV[3] == '0' then
  return 0
end
local place = enqueue(base, attempt, ttl, kind, description, now)
return waits(lock, base, now, attempt, place, value, group)
