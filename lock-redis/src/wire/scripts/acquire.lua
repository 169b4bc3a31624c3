-- ACQUIRE. KEYS: lock, queue, fence, floor. ARGV: attempt, TTL in ms; then, if they are not the
-- usual ones, 1 to wait or 0 to try, the kind, and the attempt's text (see `record`). Returns the
-- token; 0 if it is busy; minus the others' limit of permits if that is a different one; {fence, ms
-- until the obstacle may be gone, place in the queue, mark of a foreign holder or 0} if it waits.
--
-- When an exclusive lock is free, or a client of distlock holds it alone, or a try is in vain, only
-- the code before the library runs: every call and argument there costs.
--@token
local lock, attempt, ttl, kind, text = KEYS[1], ARGV[1], ARGV[2], ARGV[4] or 'x', ARGV[5]
local free = kind == 'x' and redis.call('SET', lock, attempt, 'NX', 'PX', ttl)
-- Mostly there is neither a queue nor a floor, and one call says so.
local rare = free and redis.call('EXISTS', KEYS[2], KEYS[4])
local raised = free and rare > 0 and redis.pcall('GET', KEYS[4])
if free and rare == (raised and 1 or 0) then
  local token = new_token(KEYS[3], redis.call('TIME'), raised)
  if not token then
    redis.call('DEL', lock)
    return redis.error_reply('BROKENFLOOR')
  end
  if text then
    local waiting = string.sub(KEYS[2], 1, -6) .. 'waiting'
    redis.call('HSET', waiting, 'holder', attempt .. text)
    redis.call('PEXPIRE', waiting, '172800000')
  end
  return token
end
if not free and kind == 'x' and ARGV[3] == '0' then
  -- If another attempt, or a foreign holder, holds it alone, the try has failed.
  local value = redis.pcall('GET', lock)
  if type(value) == 'string' and value ~= attempt and not string.find(value, '^[sp]%d*:%d+$') then
    return 0
  end
elseif not free and kind == 'x' then
  -- The same as the end of this script, if a client of distlock holds it alone.
  local found = redis.call('MGET', lock, KEYS[3])
  local value, last = found[1], tonumber(found[2])
  if value and last and value ~= attempt and #value == 49 and string.find(value, '^%x+:%x+$') then
    local queue, waiting = KEYS[2], string.sub(KEYS[2], 1, -6) .. 'waiting'
    local time = redis.call('TIME')
    local now = time[1] .. string.sub('00000' .. time[2], -6)
    local alive = string.format('%.0f', now + ttl * 1000)
    local record = alive .. ' ' .. ttl .. ' ' .. now .. ' x ' .. (text or '')
    -- With a record it is the same request again.
    if redis.call('HSETNX', waiting, attempt, record) == 1 then
      local place = redis.call('RPUSH', queue, attempt)
      -- As `keep_queue`, which was mostly called within the last minute.
      if place == 1 or redis.call('PTTL', waiting) < 172740000 then
        redis.call('PEXPIRE', queue, '172800000')
        redis.call('PEXPIRE', waiting, '172800000')
      end
      return {last, redis.call('PTTL', lock), place, 0}
    end
  end
end
--@record counter leader group queue wait

local base, alone = string.sub(KEYS[2], 1, -6), string.find(kind, '^[xe]')
local value, group
if not free then
  value, group = settle(lock, base)
elseif pcall(floor) then
  -- Free, but others wait and must not be overtaken.
  value, group = pump(lock, base)
else
  redis.call('DEL', lock)
  return redis.error_reply('BROKENFLOOR')
end

-- The same request again: its answer was lost.
if alone and value == attempt then
  redis.call('PEXPIRE', lock, ttl)
  if kind ~= 'x' then
    redis.call('PEXPIRE', base .. 'leader', ttl)
  end
  return same_token(base)
end
local token = group and not alone and member_token(base, attempt)
if token then
  extend(lock, base, attempt, ttl, ttl)
  return token
end

-- The limit of permits that the living attempts name. All name the same one, so one attempt is
-- enough, and the last in line is often one.
local _, limit = permits(kind)
local other = value and limit and group and string.match(group, '^p(%d+):')
local place = -1
while value and limit do
  local last = redis.call('LINDEX', base .. 'queue', place)
  local record = last and redis.call('HGET', base .. 'waiting', last)
  local theirs = record and string.match(record, '^%d+ %d+ %d+ p%d+/(%d+) ')
  if not last then
    break
  elseif theirs and alive_until(record) > now then
    other = theirs
    break
  end
  place = place - 1
end
if other and other ~= limit and redis.call('HEXISTS', base .. 'waiting', attempt) == 0 then
  return -other
end

-- An attempt in the queue now is alive, or behind one that is, or all wait for another holder.
if alone and not value then
  return grant(lock, base, attempt, ttl, kind, text)
elseif not alone and (not value
  or group and redis.call('EXISTS', base .. 'queue') == 0 and fits(base, group, kind)) then
  token = next_token(base)
  admit(lock, base, group, attempt, ttl, kind, text, token)
  stretch(lock, base)
  return token
end
if ARGV[3] == '0' then
  return 0
end

-- It waits: last in line, or where it is.
local alive = digits(now + ttl * 1000)
local record = table.concat({alive, ttl, digits(now), kind, text or ''}, ' ')
if redis.call('HSETNX', base .. 'waiting', attempt, record) == 1 then
  place = redis.call('RPUSH', base .. 'queue', attempt)
else
  record = redis.call('HGET', base .. 'waiting', attempt)
  redis.call('HSET', base .. 'waiting', attempt, alive .. string.sub(record, 17))
  place = (redis.call('LPOS', base .. 'queue', attempt) or 0) + 1
end
-- All attempts before it may be dead, and then they keep nothing alive.
keep_queue(base)
return {last_token(base), blocked_for(lock, base, attempt, value, group), place, foreign_mark(value, group)}
