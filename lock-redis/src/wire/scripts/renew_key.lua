-- RENEW_KEY: renews one key of a name. It has one key, so a node of a cluster runs it also while the
-- slot moves, when no script that sees all keys of the name can run: nothing but renewals changes
-- them. It only updates. Its first write works without memory, and then the next one does, too.
-- KEYS: the key. ARGV: attempt, TTL in ms, the ms that it has at least if it holds, which key it
-- is, and for `members` the lock's value. Returns 1 (renewed) or 0 (the attempt is not in it); for
-- `lock`, if a group has it, its value.
--@record
local key, attempt, what = KEYS[1], ARGV[1], ARGV[4]
local ttl, least = tonumber(ARGV[2]), tonumber(ARGV[3])

-- Other members may live longer.
local function extend()
  redis.call('PEXPIRE', key, math.max(redis.call('PTTL', key), least))
  return 1
end

-- Renews what one attempt has alone, as ROUND does.
local function renew()
  return redis.call('PEXPIRE', key, math.min(math.max(redis.call('PTTL', key), least), ttl))
end

if what == 'mine' or what == 'lock' then
  local value = redis.pcall('GET', key)
  if value == attempt then
    return renew()
  elseif what == 'lock' and type(value) == 'string' and string.find(value, '^[sp]%d*:%d+$') then
    extend()
    return value
  end
elseif what == 'members' then
  local found = redis.call('HMGET', key, 'group', attempt)
  if found[1] == ARGV[5] and found[2] then
    return extend()
  end
elseif what == 'holders' then
  local alive = tonumber(redis.call('ZSCORE', key, attempt) or 0)
  if alive > now then
    extend()
    redis.call('ZADD', key, digits(math.max(alive, now + least * 1000)), attempt)
    return 1
  end
elseif what == 'leader' then
  if redis.call('HGET', key, 'by') == attempt then
    return renew()
  end
elseif what == 'waiting' then
  local record = redis.call('HGET', key, attempt)
  if record and alive_until(record) > now then
    redis.call('PEXPIRE', key, 172800000)
    redis.call('HSET', key, attempt, digits(now + ttl * 1000) .. string.sub(record, 17))
    return 1
  end
end
return 0
