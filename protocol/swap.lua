-- Hand the lock over: from a token that is being released to the next one, if nobody else has it.
-- KEYS[1] the lock, KEYS[2] its fence if there is to be one; ARGV[1] the old token, ARGV[2] the new
-- one, ARGV[3] its time to live, ARGV[4] the ballot, ARGV[5] the time to live of the fence.
-- Answers -3 done; -4 done, there was no key; {pttl, start of the value} somebody else holds it;
-- {-3 or -2, ballot seen here} ours is not greater: then the old token is released, if (-3) it was
-- there, and the new one is not set.
local value = redis.call('GET', KEYS[1])
if value and value ~= ARGV[1] then
    return {redis.call('PTTL', KEYS[1]), string.sub(value, 1, 40)}
end
local seen = KEYS[2] and redis.call('GET', KEYS[2])
if seen and tonumber(seen) >= tonumber(ARGV[4]) then
    return {redis.call('DEL', KEYS[1]) == 1 and -3 or -2, seen}
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if KEYS[2] then
    redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
end
return value and -3 or -4
