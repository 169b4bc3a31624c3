-- The token. What makes one has to do with no other function: it is made anew for each call, and
-- all that it would share costs.

-- The record of the token floor: what it adds to the time, and what all tokens are above; nothing
-- if somebody has overwritten it. See FLOOR.
local function unpack_floor(record)
  return string.match(type(record) == 'string' and record or '', '^(%d+) (%d+)$')
end

-- A new token, as text, of the name with this fence; nothing if the record of the floor is broken.
-- The fence ends a day after the last grant: by then the server's time is above it, unless the
-- clock was set back by more than has passed.
local function new_token(fence, time, floor)
  -- As text, which costs less than a number, and compares like one: 16 digits until the year 2286.
  local token = time[1] .. string.sub('00000' .. time[2], -6)
  if floor then
    local offset, above = unpack_floor(floor)
    if not offset then
      return nil
    end
    token = string.format('%.0f', math.max(token + offset, above + 1))
  end
  local last = redis.call('SET', fence, token, 'PX', 86400000, 'GET')
  if last and (#last ~= #token or last >= token) then
    token = string.format('%.0f', math.max(token, last + 1))
    redis.call('SET', fence, token, 'PX', 86400000)
  end
  return token
end
