-- Who holds the key? Given a daemon, also leave word in redlockd:waits:<key> that it waits, unless
-- it has granted the lock itself.
-- KEYS[1] the lock; ARGV[1] max_ttl, ARGV[2] the daemon, or neither; ARGV[3] the token it has granted
-- last, if any.
-- Answers -2 there is no key; {pttl, start of the value} somebody holds it.
local value = redis.call('GET', KEYS[1])
if not value then
    return -2
end
local pttl = redis.call('PTTL', KEYS[1])
if ARGV[2] and value ~= ARGV[3] then
    -- Good for as long as the key lives, and a second more. The name is no key of this command: an
    -- ACL that does not allow it, or a master that takes no writes, costs the word and no more.
    local waits = 'redlockd:waits:' .. KEYS[1]
    local ms = math.min(math.max(pttl, 0), tonumber(ARGV[1]))
    if redis.pcall('GET', waits) ~= ARGV[2] or redis.pcall('PTTL', waits) < ms then
        redis.pcall('SET', waits, ARGV[2], 'PX', ms + 1000)
    end
end
return {pttl, string.sub(value, 1, 40)}
