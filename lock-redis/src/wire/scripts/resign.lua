-- RESIGN: RELEASE of a candidate. KEYS: lock, queue, floor. ARGV: attempt, and `resign`.
-- Answers 1 if the lock was the attempt's, else 0.
local mine = redis.pcall('GET', KEYS[1]) == ARGV[1]
