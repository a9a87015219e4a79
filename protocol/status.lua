-- Who holds the key?
-- KEYS[1] the lock; KEYS[2] what swap.lua finds who waits for it in, if that is to be left there;
-- ARGV[1] max_ttl, ARGV[2] the daemon that waits.
-- Answers -2 there is no key; {pttl, start of the value} somebody holds it.
local value = redis.call('GET', KEYS[1])
if not value then
    return -2
end
local pttl = redis.call('PTTL', KEYS[1])
if KEYS[2] then
    -- For as long as it is held, and until who waits has looked at the next holder. A master that
    -- takes no writes still tells who holds it.
    local ms = math.min(math.max(pttl, 0), tonumber(ARGV[1])) + 1000
    redis.pcall('SET', KEYS[2], ARGV[2], 'PX', ms)
end
return {pttl, string.sub(value, 1, 40)}
