
-- The counter of tokens, and the floor below it.

local record, asked

-- The record of the token floor, the last key of a script that may grant. A script reads it before
-- it changes anything that a grant changes: a broken record ends the script.
local function floor()
  if not asked then
    record = redis.pcall('GET', KEYS[#KEYS])
    if record and not unpack_floor(record) then
      error('BROKENFLOOR')
    end
    asked = true
  end
  return record
end

local function next_token(base)
  return new_token(base .. 'fence', time, floor())
end

-- Returns the token of an earlier exclusive grant: there was no other grant since. Keeps the fence
-- for another day. It is a new token only if the fence was deleted.
local function same_token(base)
  local last = redis.call('GETEX', base .. 'fence', 'PX', 86400000)
  if last and not tonumber(last) then
    -- A table that is answered ends at its first nil: so the rest would have no answer.
    error('the last token is not a number')
  end
  return last or next_token(base)
end
