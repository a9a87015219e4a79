-- Who holds the key? Changes nothing.
-- KEYS[1] the lock.
-- Answers -2 there is no key; {pttl, start of the value} somebody holds it.
local value = redis.call('GET', KEYS[1])
if not value then
    return -2
end
return {redis.call('PTTL', KEYS[1]), string.sub(value, 1, 40)}
