-- Delete each key that holds its token: what release.lua does for one, for many at once.
-- KEYS the locks, none twice; ARGV their tokens.
-- Answers -3 all are deleted; else a letter for each: d deleted, a there is no key, o anything
-- else, which release.lua can tell.
local values = redis.call('MGET', unpack(KEYS))
local ours = {}
local letters = {}
for i, key in ipairs(KEYS) do
    if values[i] == ARGV[i] then
        ours[#ours + 1] = key
        letters[i] = 'd'
    else
        letters[i] = redis.call('EXISTS', key) == 0 and 'a' or 'o'
    end
end
-- Last, since what fails behind it would answer an error for what is deleted.
if #ours > 0 then
    redis.call('DEL', unpack(ours))
end
if #ours == #KEYS then
    return -3
end
return table.concat(letters)
