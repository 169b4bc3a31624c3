
-- The queue of a name, shared by the scripts. `base` is what the names of its companion keys start
-- with; they are in one slot with the lock's key.
--
-- A waiting attempt's record: alive until (16 digits of server microseconds), TTL in ms, since
-- when it waits, its kind, and what it says about itself. The kind is `x` (exclusive), `s` (shared),
-- `p<weight>/<limit>` (permits), or a candidate's.

local function server_time()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- As text, a number this large is 1.79e+15 unless it is formatted.
local function digits(number)
  return string.format('%.0f', number)
end

local function last_token(base)
  return tonumber(redis.call('GET', base .. 'fence') or 0)
end

local offset, above

-- What the token floor, the last key of a script that may grant, adds to the time, and what all tokens are
-- above: see FLOOR. A script asks before it changes what a grant changes: a broken record ends it.
local function floor()
  if not offset then
    local record = redis.pcall('GET', KEYS[#KEYS]) or '0 0'
    offset, above = string.match(type(record) == 'string' and record or '', '^(%d+) (%d+)$')
    if not offset then
      error('BROKENFLOOR')
    end
  end
  return offset, above
end

-- The first of these as text, for those who only look: false if the record is broken.
local function shown_offset()
  local well, more = pcall(floor)
  return well and digits(more)
end

-- The fence ends a day after the last grant: by then the server's time is above it, unless the clock
-- was set back by more than has passed.
local function next_token(base, now)
  local more, least = floor()
  local token = math.max(last_token(base) + 1, now + more, least + 1)
  redis.call('SET', base .. 'fence', digits(token), 'PX', 86400000)
  return token
end

-- The token of an exclusive grant that was made before: nothing was granted since. Keeps the fence for
-- another day. It is a new token only if the fence was deleted.
local function same_token(base, now)
  local token = tonumber(redis.call('GETEX', base .. 'fence', 'PX', 86400000) or 0)
  return token > 0 and token or next_token(base, now)
end

-- A queue ends two days after the last sign of life of any waiter, so that a crash leaves nothing for
-- ever. The longest TTL is a day, and each waiter is renewed three times per TTL.
local function keep(base)
  redis.call('PEXPIRE', base .. 'queue', 172800000)
  redis.call('PEXPIRE', base .. 'waiting', 172800000)
end

local function describe_holder(base, attempt, holder)
  if holder and holder ~= '' then
    redis.call('HSET', base .. 'waiting', 'holder', attempt .. holder)
    redis.call('PEXPIRE', base .. 'waiting', 172800000)
  end
end

-- Until when an attempt with this record is alive.
local function alive_until(record)
  return tonumber(string.sub(record, 1, 16))
end

-- Puts an attempt last in line, or keeps it alive where it is. Answers its place.
local function enqueue(base, attempt, ttl, kind, holder, now)
  local queue, waiting = base .. 'queue', base .. 'waiting'
  local alive = digits(now + ttl * 1000)
  local record = table.concat({alive, ttl, digits(now), kind, holder or ''}, ' ')
  local place
  if redis.call('HSETNX', waiting, attempt, record) == 1 then
    place = redis.call('RPUSH', queue, attempt)
  else
    record = redis.call('HGET', waiting, attempt)
    redis.call('HSET', waiting, attempt, alive .. string.sub(record, 17))
    place = (redis.call('LPOS', queue, attempt) or 0) + 1
  end
  -- Those before it may all be dead, and keep nothing alive.
  keep(base)
  return place
end

-- Removes a waiting attempt, if it is one. Answers whether it was.
local function dequeue(base, attempt)
  if redis.call('HDEL', base .. 'waiting', attempt) == 0 then
    return false
  end
  redis.call('LREM', base .. 'queue', 1, attempt)
  return true
end

-- Tells an attempt's client something about it: a token, or `gone`. A hint: who is not reached finds
-- out by itself, so a refusal is no failure.
local function tell(lock, attempt, what)
  redis.pcall('PUBLISH', 'distlock:' .. string.sub(attempt, 1, 16),
    what .. ' ' .. string.sub(attempt, 18) .. ' ' .. lock)
end
