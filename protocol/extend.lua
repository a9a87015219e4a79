-- Extend a lock: make the key live at least ARGV[2] milliseconds from now if it holds the token.
-- Never shortens the TTL.
-- KEYS[1] the lock; ARGV[1] the token, ARGV[2] the TTL.
-- Returns -3 if done; -2 if there is no key; {pttl, start of the value} if the key has another
-- value.
local value = redis.call('GET', KEYS[1])
if not value then
    return -2
end
local pttl = redis.call('PTTL', KEYS[1])
if value ~= ARGV[1] then
    return {pttl, string.sub(value, 1, 40)}
end
if pttl >= 0 and pttl < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return -3
