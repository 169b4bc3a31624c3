
-- RELEASE or RESIGN of many. KEYS: lock and queue of each; floor. ARGV: attempt, and 1 if it leads or else 0, of
-- each. Answers per attempt 1 if it is gone, 0 if the script failed for its name and not for all.
local now, answer, done, why = server_time(), {}, 0, nil
for i = 1, (#KEYS - 1) / 2 do
  local lock, attempt = KEYS[2 * i - 1], ARGV[2 * i - 1]
  local mine = redis.pcall('GET', lock) == attempt
  local well, problem =
    pcall(leave, lock, string.sub(KEYS[2 * i], 1, -6), now, attempt, mine, ARGV[2 * i] == '1')
  answer[i] = well and 1 or 0
  done, why = done + answer[i], well and why or problem
end
if done == 0 then
  error(why)
end
return answer
