-- RELEASE of a held lock, which gives it to the next in line, and CANCEL of a waiting attempt; of
-- one or of many. KEYS: lock and queue of each; `waiting` of a holder with a description of its
-- own, if it is the only one; floor. ARGV: the attempt, if it is one that does not lead; else
-- attempt, and 1 if it leads or else 0, of each. Returns for one 1 if the lock was the attempt's,
-- else 0; for many per attempt 1 if it is gone, 0 if the script failed for its name and not for
-- all.
--
-- If no attempt waits for a lock that is held alone, or the next in line is alive, exclusive and
-- without a text, only the code before the library runs: each call there costs, and so does each of
-- the library's functions, which a call of the script makes anew.
local mine = redis.pcall('GET', KEYS[1]) == ARGV[1]
local usual = mine and not ARGV[2]
-- One call says whether an attempt waits, and takes out the first.
local first = usual and redis.call('LPOP', KEYS[2])
if usual and not first then
  redis.call('DEL', KEYS[1])
  if KEYS[4] then
    -- Not all of it: the queue alone may have been evicted, and its attempts are in it.
    redis.call('HDEL', KEYS[3], 'holder')
  end
  return 1
end
--@token
if first then
  -- The same as a step of `pump`. An error now would lose the place of the first. So what is broken
  -- is left to `pump`, as all other waiters are: it fails before it changes anything.
  local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
  local waiting = base .. 'waiting'
  local raised, record = redis.pcall('GET', KEYS[#KEYS]), redis.pcall('HGET', waiting, first)
  local alive, ttl
  if type(record) == 'string' and (not raised or unpack_floor(raised)) then
    alive, ttl = string.match(record, '^(%d+) (%d+) %d+ x $')
  end
  local time = alive and redis.call('TIME')
  if time and tonumber(alive) > time[1] * 1000000 + time[2] then
    redis.call('HDEL', waiting, first, 'holder')
    local token = new_token(base .. 'fence', time, raised)
    redis.call('SET', lock, first, 'PX', ttl)
    redis.pcall('PUBLISH', 'distlock:' .. string.sub(first, 1, 16),
      token .. ' ' .. string.sub(first, 18) .. ' ' .. lock)
    return 1
  end
  -- If it was the last one, the list is a new one, without an expiry.
  if redis.call('LPUSH', KEYS[2], first) == 1 then
    redis.call('PEXPIRE', KEYS[2], '172800000')
  end
end
--@record counter leader group queue leave

local function leave_at(i, mine)
  return leave(KEYS[2 * i - 1], string.sub(KEYS[2 * i], 1, -6), ARGV[2 * i - 1], mine, ARGV[2 * i] == '1')
end

if not ARGV[3] then
  return leave_at(1, mine)
end
local answer, done, why = {}, 0, nil
for i = 1, (#KEYS - 1) / 2 do
  local mine = redis.pcall('GET', KEYS[2 * i - 1]) == ARGV[2 * i - 1]
  local well, problem = pcall(leave_at, i, mine)
  answer[i] = well and 1 or 0
  done, why = done + answer[i], well and why or problem
end
if done == 0 then
  error(why)
end
return answer
