
-- Waiting in the queue.

local function last_token(base)
  return tonumber(redis.call('GET', base .. 'fence') or 0) or error('the last token is not a number')
end

-- A queue expires two days after the last renewal of any waiter, so that a crash leaves nothing for
-- ever. The longest TTL is a day, and each waiter is renewed three times per TTL.
local function keep_queue(base)
  redis.call('PEXPIRE', base .. 'queue', 172800000)
  redis.call('PEXPIRE', base .. 'waiting', 172800000)
end

-- Returns the ms until an attempt's obstacle ends, unless it is renewed: the first member to
-- expire, or the waiter at the head, behind which another one may fit. The head also polls a
-- foreign holder; after its death the second one does.
local function blocked_for(lock, base, attempt, value, group)
  local queue, ends = base .. 'queue', nil
  if group then
    ends = tonumber(redis.call('ZRANGE', base .. 'holders', 0, 0, 'WITHSCORES')[2])
  elseif is_foreign(value, group) and redis.call('LINDEX', queue, 1) == attempt then
    local left = redis.call('PTTL', lock)
    ends = left < 0 and math.huge or now + left * 1000
  end
  if not ends then
    return redis.call('PTTL', lock)
  end
  local first = redis.call('LINDEX', queue, 0)
  local record = first and first ~= attempt and redis.call('HGET', base .. 'waiting', first)
  if record then
    ends = math.min(ends, alive_until(record))
  end
  return ends == math.huge and -1 or math.ceil((ends - now) / 1000)
end

-- Returns 0 if the holder is a client of distlock (with a queue). Else its release sends no push,
-- and the number tells it from another such holder.
local function foreign_mark(value, group)
  if not is_foreign(value, group) then
    return 0
  end
  return type(value) == 'string' and 1 + tonumber(string.sub(redis.sha1hex(value), 1, 8), 16) or 1
end
