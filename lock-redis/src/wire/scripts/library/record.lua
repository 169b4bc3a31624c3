
-- The companion keys of a lock. `base` is the common start of their names. They are in one slot
-- with the lock's key: `fence`, `queue` (a list of the attempts that wait, in order), `waiting` (a
-- hash of their records, and the `holder`'s description), and the keys of `leader` and `group`.
--
-- A record of a waiting attempt: until when it is alive (16 digits of server microseconds), its TTL
-- in ms, since when it waits, its kind, and its text: its holder's description, which a candidate's
-- value follows. The kind is `x` (exclusive), `s` (shared), `p<weight>/<limit>` (permits), or a
-- candidate's. A record of a member: its token, its kind, and its text.
local WAITER, MEMBER = '^%d+ (%d+) %d+ (%S+) (.*)$', '^(%d+) (%S+) (.*)$'

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Without a format, a number this large becomes the text 1.79e+15.
local function digits(number)
  return string.format('%.0f', number)
end

-- Returns until when an attempt with this record is alive.
local function alive_until(record)
  return tonumber(string.sub(record, 1, 16))
end

-- Returns weight and limit of permits; nothing for other kinds.
local function permits(kind)
  return string.match(kind, '^p(%d+)/(%d+)$')
end

-- Returns the lock's value, if it is that of a group.
local function group_of(base, value)
  if type(value) == 'string' and string.find(value, '^[sp]%d*:%d+$')
    and redis.call('HGET', base .. 'members', 'group') == value then
    return value
  end
end

-- Returns the token of a member; nil if the attempt is no member.
local function member_token(base, attempt)
  local record = redis.call('HGET', base .. 'members', attempt)
  return record and string.match(record, MEMBER) or nil
end
