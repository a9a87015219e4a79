-- A daemon's heartbeat: leave what other daemons need to know, and read what they left.
-- KEYS[1] the clock entry of this host, KEYS[2] the vouch, KEYS[3] the last step of this clock that
-- daemons know of, KEYS[4..] the names that are known.
-- ARGV[1] the entry ('' leaves it; '-': there has been a step), ARGV[2] its time to live in
-- milliseconds, ARGV[3] the vouch ('' leaves it; "<this clock at its sample>:<what may be hidden>", in
-- microseconds), ARGV[4] its time to live, ARGV[5] the lease of names, ARGV[6] after how long without
-- renewal one may go to another run of the same server, ARGV[7..] the step that is known ('' for none):
-- a vouch counts with the present one alone; ARGV[8..] the servers, "<id> <run_id>", or with
-- "<database>/" in front. The first 40 bytes are never alike for two databases.
-- Answers "<a digit for each name, 1 if it is leased to another server> <vouch> <step> <entry>", the
-- step and the entry as they were found.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local entry = redis.call('GET', KEYS[1]) or '-'
local vouch = redis.call('GET', KEYS[2])
local step = redis.call('GET', KEYS[3]) or '-'
local function clock_of(text)
    local clock = string.match(text, '^(%d+):%d+$')
    return clock and tonumber(clock) or math.huge
end
-- A vouch from the future is one from before the clock was stepped back. It must not wait for its time
-- to come: it knows nothing of that.
if vouch and clock_of(vouch) > now then
    redis.call('DEL', KEYS[2])
    vouch = false
end
if ARGV[1] == '-' then
    -- The vouch is from before it. Entries bear the step that their daemon knew of; with another one they
    -- are void, on all hosts. It never expires: on a clock that jumps it might do so before them. It rises
    -- by a millisecond at least, which numbers of Lua tell apart on any clock. And a script that has written
    -- something may go on where memory is short.
    redis.call('DEL', KEYS[1], KEYS[2])
    redis.call('SET', KEYS[3], string.format('%.0f', math.max(now, (tonumber(step) or 0) + 1000)))
elseif ARGV[1] ~= '' then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
if ARGV[3] ~= '' and ARGV[7] == step and clock_of(ARGV[3]) <= now then
    redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
end
local contested = ''
for i = 4, #KEYS do
    local server = ARGV[i + 4]
    local seen = redis.call('GET', KEYS[i])
    local left = redis.call('PTTL', KEYS[i])
    local same = seen and string.sub(seen, 1, 40) == string.sub(server, 1, 40)
    if seen and seen ~= server and not (same and ARGV[5] - left > tonumber(ARGV[6])) then
        contested = contested .. '1'
        -- It would outlast a lease: the clock was stepped back.
        if left > tonumber(ARGV[5]) then
            redis.call('PEXPIRE', KEYS[i], ARGV[5])
        end
    else
        redis.call('SET', KEYS[i], server, 'PX', ARGV[5])
        contested = contested .. '0'
    end
end
return contested .. ' ' .. (vouch or '-') .. ' ' .. step .. ' ' .. entry
