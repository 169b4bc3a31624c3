
-- Elections: exclusive entries with a value, of the kind `e<database>/<length>`. Their record ends
-- with the candidate's description, of this length in bytes, and then the value. While one of them
-- holds the lock, `leader` (a hash that lives as long as the lock's key) has its attempt, token,
-- database, description and value, and the number of changes of the value.
--
-- Each change is published to observers:
-- `<token> <version> <TTL in ms> o<offset> <length> <who><value>`, for a leader, with the token
-- floor's offset to the time; `<token> gone`; `<token> look` if a holder without a value has the
-- lock now. All databases share the channels, so the channel names the database. A push is a hint:
-- an observer that misses it looks by itself.
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

-- Announces the end of a leadership, unless the next one was announced. `value`: the lock's.
local function vacate(lock, base, leader, value)
  if leader and redis.call('EXISTS', base .. 'leader') == 0 then
    announce(lock, leader[2], leader[3] .. (value and ' look' or ' gone'))
  end
end
