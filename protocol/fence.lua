-- Take the lock together with a fence: a ballot greater than every one seen here for it.
-- KEYS[1] the lock, KEYS[2] its fence; ARGV[1] the token, ARGV[2] the time to live, ARGV[3] the
-- ballot, ARGV[4] the time to live of the fence.
-- Answers -3 taken; nil the lock is held; the ballot seen here, if ours is not greater.
if redis.call('GET', KEYS[1]) then
    return false
end
local seen = redis.call('GET', KEYS[2])
if seen and tonumber(seen) >= tonumber(ARGV[3]) then
    return seen
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
-- ARGV's own bytes: a number made text by Lua would be rounded.
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
return -3
