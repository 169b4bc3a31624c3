-- FLOOR. KEYS: floor. ARGV: the number that all later tokens are to exceed, or 0. The floor only
-- rises. The record: the offset that is added to the server's time, and the highest floor. Tokens
-- exceed the second also when the first is too small: after the clock was set back, or on a server
-- that is behind. Returns the highest floor, and the greatest token that may exist, as text.
--
-- A fence is kept for a day. So tokens are at most a day ahead of the time, if the clock was set
-- back.
--@token
local time, wanted = redis.call('TIME'), tonumber(ARGV[1])
local now = time[1] * 1000000 + time[2]
local offset, above = unpack_floor(redis.pcall('GET', KEYS[1]) or '0 0')
if not offset then
  return redis.error_reply('BROKENFLOOR')
end
offset, above = tonumber(offset), tonumber(above)
if wanted > above then
  offset, above = math.max(offset, wanted + 1 - now), wanted
  redis.call('SET', KEYS[1], string.format('%.0f %.0f', offset, above))
end
return {string.format('%.0f', above),
  string.format('%.0f', math.max(offset + now, above + 1) + 86400000000)}
