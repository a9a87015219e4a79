-- A daemon's heartbeat: leave what other daemons need to know, and read what they left.
-- KEYS[1] the clock entry of this host, KEYS[2] the attestation, KEYS[3] the last step of this clock that
-- daemons know of, KEYS[4..] the names that are known.
-- ARGV[1] the entry ('' leaves it; '-': there has been a step), ARGV[2] its time to live in
-- milliseconds, ARGV[3] the attestation ('' leaves it; "<this clock at its sample>:<what may be hidden>", in
-- microseconds), ARGV[4] its time to live, ARGV[5] the lease of names, ARGV[6] how long after a renewal
-- the daemon that renewed may still count votes of that server, ARGV[7] the step that is known ('' for
-- none): a attestation counts with the present one alone; ARGV[8] the id of this daemon, ARGV[9..] the
-- servers, "<id> <run_id>", or with "<database>/" in front. The first 40 bytes are never alike for two
-- databases.
-- A lease is "<server> <daemon>=<when> ...": the daemons that renewed it within ARGV[6], the latest
-- first. Of more than 8 the others are one, "*", which is never the daemon that asks.
-- Answers "<a digit for each name> <attestation> <step> <entry>", the step and the entry as they were found.
-- 0: the name is leased to this server now. 1: another server has it. 2: another process of the same
-- data has it, and another daemon may count its votes.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local entry = redis.call('GET', KEYS[1]) or '-'
local attestation = redis.call('GET', KEYS[2])
local step = redis.call('GET', KEYS[3]) or '-'
local function clock_of(text)
    local clock = string.match(text, '^(%d+):%d+$')
    return clock and tonumber(clock) or math.huge
end
-- A attestation from the future is one from before the clock was stepped back. It must not wait for its time
-- to come: it knows nothing of that.
if attestation and clock_of(attestation) > now then
    redis.call('DEL', KEYS[2])
    attestation = false
end
if ARGV[1] == '-' then
    -- The attestation is from before it. Entries bear the step that their daemon knew of; with another one they
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
local digits = ''
local now_ms = math.floor(now / 1000)
local lease, fresh, me = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[8]
for i = 4, #KEYS do
    local server = ARGV[i + 5]
    local seen = redis.call('GET', KEYS[i])
    local left = redis.call('PTTL', KEYS[i])
    if left < 0 then
        left = lease
    end
    local known, renewals = string.match(seen or '', '^(%S+ %S+)(.*)$')
    local others, count, rest = '', 0, -1
    -- Where nobody has signed, anybody may have renewed it.
    if known and renewals == '' then
        renewals = string.format(' *=%.0f', now_ms - math.max(lease - left, 0))
    end
    for daemon, at in string.gmatch(renewals or '', ' ([%x*]+)=(%d+)') do
        -- One of the future is from before the clock was set back.
        at = math.min(tonumber(at), now_ms)
        if daemon ~= me and now_ms - at <= fresh then
            count = count + 1
            if daemon == '*' or count > 7 then
                rest = math.max(rest, at)
            else
                others = string.format('%s %s=%.0f', others, daemon, at)
            end
        end
    end
    if rest >= 0 then
        others = string.format('%s *=%.0f', others, rest)
    end
    local same = known and string.sub(known, 1, 40) == string.sub(server, 1, 40)
    if not seen or known == server or (same and others == '') then
        redis.call('SET', KEYS[i], string.format('%s %s=%.0f%s', server, me, now_ms, others), 'PX', ARGV[5])
        digits = digits .. '0'
    elseif same then
        -- This daemon itself has left that process, and says so.
        redis.call('SET', KEYS[i], known .. others, 'PX', math.max(math.min(left, lease), 1))
        digits = digits .. '2'
    else
        digits = digits .. '1'
        -- It would outlast a lease: the clock was stepped back.
        redis.call('PEXPIRE', KEYS[i], math.max(math.min(left, lease), 1))
    end
end
return digits .. ' ' .. (attestation or '-') .. ' ' .. step .. ' ' .. entry
