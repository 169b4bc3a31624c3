
-- Elections: exclusive entries with a value, of the kind `e<database>/<length>`. Their text is the
-- candidate's description, of this length in bytes, and then the value. While one of them holds the
-- lock, `leader` (a hash that lives as long as the lock's key) has its attempt, token,
-- database, description and value, and the number of changes of the value.
--
-- Each change is announced to observers by an empty push: they look. All databases share the
-- channels, so the channel names the database.
local function announce(lock, database)
  redis.pcall('PUBLISH', 'distlock:leader:' .. database .. ':' .. lock, '')
end

local function seat(lock, base, attempt, ttl, token, version, database, who, value)
  redis.call('HSET', base .. 'leader', 'by', attempt, 'token', token, 'version', version,
    'database', database, 'who', who, 'value', value)
  if tonumber(ttl) > 0 then
    redis.call('PEXPIRE', base .. 'leader', ttl)
  end
  announce(lock, database)
end

-- Announces the end of a leadership in this database, unless the next one was announced.
local function vacate(lock, base, database)
  if database and redis.call('EXISTS', base .. 'leader') == 0 then
    announce(lock, database)
  end
end
