
local lock, base = KEYS[1], string.sub(KEYS[2], 1, -6)
if mine then
  if not hand_over(lock, base, server_time()) then
    redis.call('DEL', lock, base .. 'waiting')
  end
  return 1
end
if redis.call('HDEL', base .. 'waiting', ARGV[1]) == 1 then
  redis.call('LREM', base .. 'queue', 1, ARGV[1])
end
if redis.call('EXISTS', lock) == 0 then
  hand_over(lock, base, server_time())
end
return 0
