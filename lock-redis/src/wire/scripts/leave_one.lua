
-- What is left of RELEASE and RESIGN.
return leave(KEYS[1], string.sub(KEYS[2], 1, -6), server_time(), ARGV[1], mine, ARGV[2])
