-- Make the key live at least ARGV[2] milliseconds from now if it holds our token; never shorten it.
-- KEYS[1] the lock, ARGV[1] the token, ARGV[2] the time to live.
-- Answers -3 it is so; -2 there is no key; {pttl, start of the value} somebody else holds it.
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
