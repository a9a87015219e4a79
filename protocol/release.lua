-- Delete the key if it holds our token (the paper, "Correct Implementation with a Single Instance").
-- KEYS[1] the lock, ARGV[1] the token.
-- Answers -3 deleted; -2 there is no key; {pttl, start of the value} somebody else holds it.
local value = redis.call('GET', KEYS[1])
if value == ARGV[1] then
    redis.call('DEL', KEYS[1])
    return -3
elseif not value then
    return -2
end
return {redis.call('PTTL', KEYS[1]), string.sub(value, 1, 40)}
