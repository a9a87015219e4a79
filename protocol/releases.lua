-- Release several locks: delete each key that holds its token.
-- KEYS the locks, all different; ARGV their tokens.
-- Returns -3 if all are deleted. Otherwise returns one letter for each key: d if it is deleted, a
-- if there is no such key, o in any other case. A key with an o must be released with release.lua.
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
-- DEL comes last: if a later command failed, the script would return an error although the keys are
-- deleted.
if #ours > 0 then
    redis.call('DEL', unpack(ours))
end
if #ours == #KEYS then
    return -3
end
return table.concat(letters)
