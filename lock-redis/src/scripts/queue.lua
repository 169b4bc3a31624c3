
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

local function next_token(base, now)
  local token = math.max(last_token(base) + 1, now)
  redis.call('SET', base .. 'fence', digits(token))
  return token
end

-- The token of an exclusive grant that was made before: nobody was granted anything since. Only
-- somebody who deletes keys makes it a new one.
local function same_token(base, now)
  local token = last_token(base)
  return token > 0 and token or next_token(base, now)
end

-- Companion keys go two days after the last sign of life, so that a crash leaves nothing for ever.
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
  local record = redis.call('HGET', waiting, attempt)
  local place
  if record then
    redis.call('HSET', waiting, attempt, alive .. string.sub(record, 17))
    place = (redis.call('LPOS', queue, attempt) or 0) + 1
  else
    record = table.concat({alive, ttl, digits(now), kind, holder or ''}, ' ')
    redis.call('HSET', waiting, attempt, record)
    place = redis.call('RPUSH', queue, attempt)
  end
  if place == 1 then
    keep(base)
  end
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
