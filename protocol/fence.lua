-- Acquire a lock with a fence: the ballot must be greater than every earlier one on this master.
-- KEYS[1] the lock, KEYS[2] its fence; ARGV[1] the token, ARGV[2] the TTL, ARGV[3] the ballot,
-- ARGV[4] the TTL of the fence.
-- Returns -3 if acquired; nil if the lock is held; the stored ballot if ARGV[3] is not greater than
-- it.
if redis.call('GET', KEYS[1]) then
    return false
end
local seen = redis.call('GET', KEYS[2])
if seen and tonumber(seen) >= tonumber(ARGV[3]) then
    return seen
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
-- Store the bytes of ARGV, since Lua would round the number.
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
return -3
