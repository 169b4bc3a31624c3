
-- INSPECT. KEYS: lock, queue, floor. Answers a whole `snapshot`.
return (snapshot(KEYS[1], string.sub(KEYS[2], 1, -6), server_time(), true))
