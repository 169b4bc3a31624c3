
-- DIAGNOSE. KEYS: lock, queue, floor. ARGV: attempts. Answers a `snapshot` that names one holder, and each attempt's
-- place: 0 if it holds, -1 if it is not in the first 10,000 places of the queue. That bounds what is
-- read, by C code for a few attempts (LPOS goes through a list), else once for all.
local lock, base, LOOK = KEYS[1], string.sub(KEYS[2], 1, -6), 10000
local now = server_time()
local seen, group = snapshot(lock, base, now, false)
local rank

local function place_of(attempt)
  if #ARGV <= 8 then
    local index = redis.call('LPOS', base .. 'queue', attempt, 'MAXLEN', LOOK)
    return index and index + 1
  end
  if not rank then
    rank = {}
    for i, waiter in ipairs(redis.call('LRANGE', base .. 'queue', 0, LOOK - 1)) do
      rank[waiter] = i
    end
  end
  return rank[attempt]
end

local places = {}
for i, attempt in ipairs(ARGV) do
  local holds = seen[1] == attempt or group and member_token(base, attempt)
  places[i] = holds and 0 or place_of(attempt) or -1
end
return {seen, places}
