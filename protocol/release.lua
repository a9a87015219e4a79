-- Delete the key if it holds our token (the paper, "Correct Implementation with a Single Instance").
-- KEYS[1] the lock, ARGV[1] the token, ARGV[2] max_ttl.
-- Answers -3 deleted; -2 there is no key; {pttl, start of the value} somebody else holds it.
local value = redis.call('GET', KEYS[1])
if value == ARGV[1] then
    redis.call('DEL', KEYS[1])
    return -3
elseif not value then
    return -2
end
local pttl = redis.call('PTTL', KEYS[1])
-- A token of ours that would live longer than any lock may: the clock was stepped back.
if pttl > tonumber(ARGV[2]) and #value == 40 and not string.find(value, '[^0-9a-f]') then
    pttl = tonumber(ARGV[2])
    redis.call('PEXPIRE', KEYS[1], pttl)
end
return {pttl, string.sub(value, 1, 40)}
