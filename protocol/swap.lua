-- Hand a lock over: replace the old token, which is being released, by the new one.
-- KEYS[1] the lock, KEYS[2] its fence (optional); ARGV[1] the old token, ARGV[2] the new token,
-- ARGV[3] its TTL, ARGV[4] the id of this daemon, ARGV[5] the ballot, ARGV[6] the TTL of the fence.
-- The script also replaces a frozen form of the old token (freeze.lua).
-- Returns one integer if the new token is set: -3 if the key had the old token; -4 if there was no
-- key. If another daemon has left a contention hint (status.lua), the integer is -5 or -6 instead,
-- minus twice the need in that hint, which is at most 9999 milliseconds.
-- Returns {pttl, start of the value} if the key has another value.
-- Returns {-3 or -2, stored ballot} if the stored ballot is not less than ARGV[5]. Then the new
-- token is not set. -3: the old token was deleted; -2: there was no key.
local value = redis.call('GET', KEYS[1])
if value and value ~= ARGV[1] and not (string.sub(value, 1, 1) == '!' and
    string.sub(value, 17) == string.sub(ARGV[1], 17)) then
    return {redis.call('PTTL', KEYS[1]), string.sub(value, 1, 40)}
end
local seen = KEYS[2] and redis.call('GET', KEYS[2])
if seen and tonumber(seen) >= tonumber(ARGV[5]) then
    return {redis.call('DEL', KEYS[1]) == 1 and -3 or -2, seen}
end
local words = redis.pcall('MGET', 'redlockd:waits:' .. KEYS[1], 'redlockd:far:' .. KEYS[1])
local need
for i = 1, 2 do
    local word = words[i]
    if type(word) == 'string' and string.sub(word, 1, 16) ~= ARGV[4] then
        need = math.max(need or 0, tonumber(string.match(word, '^%d%d?%d?%d?$', 17)) or 0)
    end
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if KEYS[2] then
    redis.call('SET', KEYS[2], ARGV[5], 'PX', ARGV[6])
end
local done = value and -3 or -4
return need and done - 2 - 2 * need or done
