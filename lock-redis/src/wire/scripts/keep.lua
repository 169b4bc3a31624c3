-- KEEP: renews a lock that is held alone. KEYS: lock. ARGV: attempt, TTL in ms. It has one key, so a
-- node of a cluster runs it also while the slot moves. Returns 1 (renewed) or 0 (gone).
return redis.pcall('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0
