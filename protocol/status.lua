-- Read the state of a lock. If ARGV[2] is given and the key does not have the value ARGV[3], also
-- leave a contention hint: in redlockd:waits:<key>; and, if no waiter has a greater need, in
-- redlockd:far:<key>.
-- KEYS[1] the lock. Optional: ARGV[1] max_ttl in milliseconds; ARGV[2] the contention hint: the id
-- of this daemon, 16 characters, followed by its need if it has a far waiter; ARGV[3] the token
-- that this daemon granted last. The need is how many milliseconds the far waiter needs the lock
-- to be free.
-- Returns -2 if there is no key; {pttl, start of the value} if there is one.
local value = redis.call('GET', KEYS[1])
if not value then
    return -2
end
local pttl = redis.call('PTTL', KEYS[1])
if ARGV[2] and value ~= ARGV[3] then
    -- The hint lives a second longer than the key of the lock, but no longer than max_ttl plus a
    -- second. The key of the hint is not among KEYS, and errors are ignored. So if an ACL forbids
    -- that key or MGET, or the master accepts no writes, only the hint is missing.
    local ms = math.min(math.max(pttl, 0), tonumber(ARGV[1]))
    local waits, far = 'redlockd:waits:' .. KEYS[1], 'redlockd:far:' .. KEYS[1]
    local need = tonumber(string.sub(ARGV[2], 17))
    -- Read only what may be written. The server would remember a key without a value for the reports
    -- of changes (CLIENT TRACKING), and forget it only when somebody writes it.
    local hints = need and redis.pcall('MGET', waits, far) or redis.pcall('MGET', waits)
    local function leave(name, hint)
        if hint ~= ARGV[2] or redis.pcall('PTTL', name) < ms then
            redis.pcall('SET', name, ARGV[2], 'PX', ms + 1000)
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
