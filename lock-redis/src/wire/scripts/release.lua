-- RELEASE of a held lock, which gives it to the next in line, and CANCEL of a waiting attempt; of
-- one or of many. KEYS: lock and queue of each; `waiting` of a holder with a description of its own, if it is the only one; floor. ARGV:
-- the attempt, if it is one that does not lead; else attempt, and 1 if it leads or else 0, of each.
-- Returns for one 1 if the lock was the attempt's, else 0; for many per attempt 1 if it is gone, 0
-- if the script failed for its name and not for all.
local mine = redis.pcall('GET', KEYS[1]) == ARGV[1]
if mine and not ARGV[2] and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1])
  if KEYS[4] then
    redis.call('DEL', KEYS[3])
  end
  return 1
end
--@token record counter leader group queue leave

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
