-- Release a lock: delete the key if it holds the token (the paper, "Correct Implementation with a
-- Single Instance").
-- KEYS[1] the lock; ARGV[1] the token, ARGV[2] max_ttl in milliseconds.
-- ARGV[3] (optional) the contention hint of a daemon that was refused the lock (status.lua). If the
-- key has another value than the token, the script leaves this hint.
-- The script also deletes a frozen form of the token (freeze.lua). If ARGV[1] is a frozen token
-- itself, the script deletes only exactly that value.
-- Returns -3 if deleted; -2 if there is no key; {pttl, start of the value} if the key has another
-- value.
local value = redis.call('GET', KEYS[1])
if not value then
    return -2
elseif value == ARGV[1] or (string.sub(value, 1, 1) == '!' and string.sub(ARGV[1], 1, 1) ~= '!' and
    string.sub(value, 17) == string.sub(ARGV[1], 17)) then
    redis.call('DEL', KEYS[1])
    return -3
end
local pttl = redis.call('PTTL', KEYS[1])
-- If a token of redlockd has a TTL above max_ttl, the clock was stepped back: shorten the TTL. The
-- limit is the max_ttl in the record of this master, since the daemon that runs this script may
-- belong to another set.
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
    local waits, far = 'redlockd:waits:' .. KEYS[1], 'redlockd:far:' .. KEYS[1]
    local need = tonumber(string.sub(ARGV[3], 17))
    -- As in status.lua, a hint is read only if it may be written.
    local hints = need and redis.pcall('MGET', waits, far) or redis.pcall('MGET', waits)
    local function leave(name, hint)
        if hint ~= ARGV[3] or redis.pcall('PTTL', name) < ms then
            redis.pcall('SET', name, ARGV[3], 'PX', ms + 1000)
        end
    end
    if not hints.err then
        leave(waits, hints[1])
        if need and (tonumber(string.match(hints[2] or '', '^%d+$', 17)) or 0) <= need then
            leave(far, hints[2])
        end
    end
end
return {pttl, string.sub(value, 1, 40)}
