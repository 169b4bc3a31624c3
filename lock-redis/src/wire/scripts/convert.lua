-- CONVERT. KEYS: lock, queue, floor. ARGV: attempt, token, and the attempt's new kind.
--
-- To `s`: makes the attempt that holds the lock alone the first member of a group, for as long as
-- it would have held the lock, and lets in the waiters that fit beside it. Returns 1, also if it
-- was done before; 0 if the lock is not the attempt's.
--
-- To `x`: makes a member that is alone, and whose lock has no waiters, the only holder, for as long
-- as it would have been a member. Returns the new token, also if it was done before; 0 if another
-- attempt holds or waits; -1 if the attempt is no member.
--@token record counter leader group queue

local lock, base, attempt, token = KEYS[1], string.sub(KEYS[2], 1, -6), ARGV[1], ARGV[2]
local value, group = settle(lock, base)
local record = group and redis.call('HGET', base .. 'members', attempt)

local function downgrade()
  if record then
    return 1
  elseif value ~= attempt or tonumber(redis.call('GET', base .. 'fence') or 0) > tonumber(token) then
    -- Not the attempt's, or its again by a later upgrade: this request was on its way for long.
    return 0
  end
  local text = redis.call('HGET', base .. 'waiting', 'holder') or ''
  text = string.sub(text, 1, #attempt) == attempt and string.sub(text, #attempt + 1) or ''
  local left = math.max(redis.call('PTTL', lock), 1)
  redis.call('HDEL', base .. 'waiting', 'holder')
  local group = admit(lock, base, nil, attempt, left, 's', text, token)
  stretch(lock, base)
  pump(lock, base, group)
  return 1
end

local function upgrade()
  if value == attempt then
    return tonumber(same_token(base))
  elseif not record then
    return -1
  end
  local last, kind, text = string.match(record, MEMBER)
  if last ~= token or kind ~= 's' or redis.call('ZCARD', base .. 'holders') ~= 1
    or redis.call('EXISTS', base .. 'queue') == 1 then
    return 0
  end
  local left = math.max(redis.call('PTTL', lock), 1)
  -- A broken record of the floor ends the script before anything is changed.
  floor()
  redis.call('DEL', base .. 'holders', base .. 'members')
  return tonumber(grant(lock, base, attempt, left, 'x', text))
end

return ARGV[3] == 's' and downgrade() or upgrade()
