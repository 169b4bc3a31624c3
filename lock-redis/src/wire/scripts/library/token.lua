-- The token. These functions use no other part: each call of a script makes them anew, and every
-- shared part would cost.

-- Reads the record of the token floor: the offset to the time, and the number that all tokens
-- exceed. Returns nothing if the record was overwritten. See FLOOR.
local function unpack_floor(record)
  return string.match(type(record) == 'string' and record or '', '^(%d+) (%d+)$')
end

-- Returns a new token, as text, of the name with this fence; nothing if the record of the floor is
-- broken. The fence expires a day after the last grant. By then the server's time is above it,
-- unless the clock was set back by more than has passed.
local function new_token(fence, time, floor)
  -- Text costs less than a number, and compares like one: it has 16 digits until the year 2286.
  local token = time[1] .. string.sub('00000' .. time[2], -6)
  if floor then
    local offset, above = unpack_floor(floor)
    if not offset then
      return nil
    end
    token = string.format('%.0f', math.max(token + offset, above + 1))
  end
  -- As text: a number would be printed with 17 digits at each call.
  local last = redis.call('SET', fence, token, 'PX', '86400000', 'GET')
  if last and (#last ~= #token or last >= token) then
    token = string.format('%.0f', math.max(token, last + 1))
    redis.call('SET', fence, token, 'PX', '86400000')
  end
  return token
end
