-- The first half of BREAK: replace the token by a frozen token with the same TTL. From then on no
-- client can extend the lock, and the key still excludes every client until the TTL ends.
-- KEYS[1] the lock; ARGV[1] the frozen token: '!', 15 digits, and the last 24 digits of the token.
-- The script also replaces the frozen token of another BREAK.
-- Returns -3 if done; -2 if there is no key; {pttl, start of the value} if the key has another
-- value.
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
    -- The PEXPIRE comes first because Redis lets a script that has already written exceed
    -- maxmemory.
    redis.call('PEXPIRE', KEYS[1], math.max(pttl, 1))
    redis.call('SET', KEYS[1], ARGV[1], 'PX', math.max(pttl, 1))
end
return -3
