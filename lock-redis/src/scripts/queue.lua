
-- The queue of a name, shared by the scripts. `base` is what the names of its companion keys start
-- with; they are in one slot with the lock's key.
--
-- A waiting attempt's record: alive until (16 digits of server microseconds), TTL in ms, since
-- when it waits, and what it says about itself.

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

-- The token of a grant that was made before. Only somebody who deletes keys makes it a new one.
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

-- Gives a lock that is free, or the caller's to give, to the first waiter that is alive.
--
-- The first write removes something: that works also when the server is out of memory, and once a
-- script has written, its other writes do too. So a hand-over never stops half-way.
local function hand_over(lock, base, now)
  while true do
    local attempt = redis.call('LPOP', base .. 'queue')
    if not attempt then
      return nil
    end
    local record = redis.call('HGET', base .. 'waiting', attempt)
    redis.call('HDEL', base .. 'waiting', attempt, 'holder')
    local alive = record and tonumber(string.sub(record, 1, 16))
    if alive and alive > now then
      local ttl, holder = string.match(record, '^%d+ (%d+) %d+ (.*)$')
      local token = next_token(base, now)
      redis.call('SET', lock, attempt, 'PX', ttl)
      describe_holder(base, attempt, holder)
      -- A hint: a waiter that it does not reach finds out by itself, so a refusal is no failure.
      redis.pcall('PUBLISH', 'distlock:' .. string.sub(attempt, 1, 16),
        digits(token) .. ' ' .. string.sub(attempt, 18) .. ' ' .. lock)
      return attempt, token
    end
  end
end

-- 1 if the holder is no client of distlock (with a queue): its release tells nobody.
local function is_foreign(holder)
  local ours = type(holder) == 'string' and #holder == 49 and string.match(holder, '^%x+:%x+$')
  return ours and 0 or 1
end
