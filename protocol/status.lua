-- Who holds the key? Given a daemon, also leave word that it waits in redlockd:waits:<key>, unless it
-- has granted the lock itself; and in redlockd:far:<key>, if it needs longer than the others.
-- KEYS[1] the lock; ARGV[1] max_ttl, ARGV[2] the daemon, 16 characters, and for how many milliseconds
-- the lock has to be free for it, if that is long; or neither; ARGV[3] the token it has granted last,
-- if any.
-- Answers -2 there is no key; {pttl, start of the value} somebody holds it.
local value = redis.call('GET', KEYS[1])
if not value then
    return -2
end
local pttl = redis.call('PTTL', KEYS[1])
if ARGV[2] and value ~= ARGV[3] then
    -- Good for as long as the key lives, and a second more. The name is no key of this command: an
    -- ACL that does not allow it, or a master that takes no writes, costs the word and no more.
    local ms = math.min(math.max(pttl, 0), tonumber(ARGV[1]))
    local function leave(name)
        if redis.pcall('GET', name) ~= ARGV[2] or redis.pcall('PTTL', name) < ms then
            redis.pcall('SET', name, ARGV[2], 'PX', ms + 1000)
        end
    end
    leave('redlockd:waits:' .. KEYS[1])
    local need = tonumber(string.sub(ARGV[2], 17))
    local far = need and redis.pcall('GET', 'redlockd:far:' .. KEYS[1])
    if need and (type(far) ~= 'string' or (tonumber(string.match(far, '^%d+$', 17)) or 0) <= need) then
        leave('redlockd:far:' .. KEYS[1])
    end
end
return {pttl, string.sub(value, 1, 40)}
