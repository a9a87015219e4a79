-- Delete the key if it holds our token (the paper, "Correct Implementation with a Single Instance").
-- KEYS[1] the lock, ARGV[1] the token, ARGV[2] max_ttl, ARGV[3] the daemon and what it needs, if it
-- was refused the lock: then word of that is left where somebody else holds it, as status.lua does.
-- A token is released in its frozen form as well (freeze.lua); a frozen one only if it is the same.
-- Answers -3 deleted; -2 there is no key; {pttl, start of the value} somebody else holds it.
local value = redis.call('GET', KEYS[1])
if not value then
    return -2
elseif value == ARGV[1] or (string.sub(value, 1, 1) == '!' and string.sub(ARGV[1], 1, 1) ~= '!' and
    string.sub(value, 17) == string.sub(ARGV[1], 17)) then
    redis.call('DEL', KEYS[1])
    return -3
end
local pttl = redis.call('PTTL', KEYS[1])
-- A token of ours that would live longer than any lock may: the clock was stepped back. How long that
-- is says the record, which is of those who vote here: whoever asks may be a daemon of another set.
if pttl > tonumber(ARGV[2]) and #value == 40 and not string.find(value, '[^!0-9a-f]') then
    local record = redis.pcall('GET', 'redlockd:node')
    local most = type(record) == 'string' and string.match(record, ' max_ttl_ms=(%d+) ')
    if most and pttl > tonumber(most) then
        pttl = tonumber(most)
        redis.call('PEXPIRE', KEYS[1], most)
    end
end
if ARGV[3] then
    local ms = math.min(math.max(pttl, 0), tonumber(ARGV[2]))
    local function leave(name)
        if redis.pcall('GET', name) ~= ARGV[3] or redis.pcall('PTTL', name) < ms then
            redis.pcall('SET', name, ARGV[3], 'PX', ms + 1000)
        end
    end
    leave('redlockd:waits:' .. KEYS[1])
    local need = tonumber(string.sub(ARGV[3], 17))
    local far = need and redis.pcall('GET', 'redlockd:far:' .. KEYS[1])
    if need and (type(far) ~= 'string' or (tonumber(string.match(far, '^%d+$', 17)) or 0) <= need) then
        leave('redlockd:far:' .. KEYS[1])
    end
end
return {pttl, string.sub(value, 1, 40)}
