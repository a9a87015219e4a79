-- The first half of breaking a lock by force: a frozen token takes the place of the token, so that
-- nobody can extend the lock any more, and the key excludes everybody for as long as it would have.
-- KEYS[1] the lock; ARGV[1] the frozen token: '!', 15 digits, and the last 24 digits of the token. A
-- frozen token of another BREAK is replaced as well.
-- Answers -3 it is so; -2 there is no key; {pttl, start of the value} somebody else holds it.
local value = redis.call('GET', KEYS[1])
if not value then
    return -2
end
local pttl = redis.call('PTTL', KEYS[1])
if string.sub(value, 17) ~= string.sub(ARGV[1], 17) then
    return {pttl, string.sub(value, 1, 40)}
end
if pttl < 0 then
    redis.call('SET', KEYS[1], ARGV[1])
else
    -- A script that has written something may go on where memory is short.
    redis.call('PEXPIRE', KEYS[1], math.max(pttl, 1))
    redis.call('SET', KEYS[1], ARGV[1], 'PX', math.max(pttl, 1))
end
return -3
