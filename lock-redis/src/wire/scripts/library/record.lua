
-- What is written beside the lock's key. `base` is what the names of a name's companion keys start
-- with; they are in one slot with the lock's key: `fence`, `queue` (a list of the attempts that
-- wait, in order), `waiting` (a hash of their records, and what the `holder` says about itself),
-- and those of `leader` and `group`.
--
-- A record of a waiting attempt: until when it is alive (16 digits of server microseconds), its TTL
-- in ms, since when it waits, its kind, and what it says about itself. The kind is `x` (exclusive),
-- `s` (shared), `p<weight>/<limit>` (permits), or a candidate's. A record of one that holds beside
-- others: its token, its kind, and what it says about itself.
local WAITER, MEMBER = '^%d+ (%d+) %d+ (%S+) (.*)$', '^(%d+) (%S+) (.*)$'

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- As text, a number this large is 1.79e+15 unless it is formatted.
local function digits(number)
  return string.format('%.0f', number)
end

-- Until when an attempt with this record waits.
local function alive_until(record)
  return tonumber(string.sub(record, 1, 16))
end

-- Weight and limit of permits; nothing of other kinds.
local function permits(kind)
  return string.match(kind, '^p(%d+)/(%d+)$')
end

-- The lock's value, if it is that of a group.
local function group_of(base, value)
  if type(value) == 'string' and string.find(value, '^[sp]%d*:%d+$')
    and redis.call('HGET', base .. 'members', 'group') == value then
    return value
  end
end

-- The token of a member; nil if the attempt is none.
local function member_token(base, attempt)
  local record = redis.call('HGET', base .. 'members', attempt)
  return record and string.match(record, MEMBER) or nil
end
