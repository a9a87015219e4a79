-- A daemon's heartbeat: leave what other daemons need to know, and read what they left.
-- KEYS[1] the clock entry of this host, KEYS[2] the vouch, KEYS[3..] the names that are known.
-- ARGV[1] the entry ('' leaves it), ARGV[2] its time to live in milliseconds, ARGV[3] the vouch
-- ('' leaves it), ARGV[4] the lease of vouch and names, ARGV[5] the daemon's id, ARGV[6..] run_ids.
-- Answers "<a digit for each name, 1 if it is leased to another server> <vouch> <entry>".
local entry = redis.call('GET', KEYS[1]) or '-'
local vouch = redis.call('GET', KEYS[2]) or '-'
if ARGV[1] ~= '' then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
if ARGV[3] ~= '' then
    redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
end
local contested = ''
for i = 3, #KEYS do
    local run, owner = string.match(redis.call('GET', KEYS[i]) or '', '^(%w+) (%w+)$')
    -- A lease of our own may be changed: that is how a restarted master is known again at once.
    if run and run ~= ARGV[i + 3] and owner ~= ARGV[5] then
        contested = contested .. '1'
    else
        redis.call('SET', KEYS[i], ARGV[i + 3] .. ' ' .. ARGV[5], 'PX', ARGV[4])
        contested = contested .. '0'
    end
end
return contested .. ' ' .. vouch .. ' ' .. entry
