
-- Elections: exclusive entries with a value, of the kind `e<database>/<length>`; their record ends
-- with what the candidate says about itself, so many bytes, and then the value. While one of them
-- holds the lock, `leader` (a hash, that lives as long as the lock's key) tells by whom, with which
-- token, in which database, what it says about itself, its value and how often that was changed.
--
-- Observers are told of each change: `<token> <version> <TTL in ms> o<offset> <length>
-- <who><value>`, that it leads, with what the token floor adds to the time; `<token> gone`;
-- `<token> look`, that somebody without a value holds the lock now. Channels are shared by all
-- databases, so the channel names the database. A hint: who is not reached looks by itself.
local function announce(lock, database, what)
  redis.pcall('PUBLISH', 'distlock:leader:' .. database .. ':' .. lock, what)
end

local function seat(lock, base, attempt, ttl, token, version, database, who, value)
  redis.call('HSET', base .. 'leader', 'by', attempt, 'token', token, 'version', version,
    'database', database, 'who', who, 'value', value)
  if tonumber(ttl) > 0 then
    redis.call('PEXPIRE', base .. 'leader', ttl)
  end
  local offset = unpack_floor(floor() or '0 0')
  announce(lock, database, table.concat({token, version, ttl, 'o' .. offset, #who, who .. value}, ' '))
end

-- A candidate leads from now on.
local function elect(lock, base, attempt, ttl, token, kind, said)
  local database, length = string.match(kind, '^e(%d+)/(%d+)$')
  seat(lock, base, attempt, ttl, token, 0, database,
    string.sub(said, 1, length), string.sub(said, length + 1))
end

-- Tells observers that a leadership is over, unless they were told of the next one. `value`: the
-- lock's.
local function vacate(lock, base, leader, value)
  if leader and redis.call('EXISTS', base .. 'leader') == 0 then
    announce(lock, leader[2], leader[3] .. (value and ' look' or ' gone'))
  end
end
