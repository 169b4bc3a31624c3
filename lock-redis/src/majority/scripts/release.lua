-- Takes an attempt's vote back, unless it is of a later ballot.
-- KEYS: lock. ARGV: attempt, ballot.
-- Returns whether there was such a vote.
local held = redis.pcall('get', KEYS[1])
held = type(held) == 'string' and held or ''
local attempt, ballot = string.match(held, '^(%x+):(%d+):')
if attempt ~= ARGV[1] or tonumber(ballot) > tonumber(ARGV[2]) then
  return 0
end
return redis.call('del', KEYS[1])
