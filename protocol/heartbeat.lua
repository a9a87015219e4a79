-- A daemon's heartbeat: leave information for other daemons on this master, and read theirs.
-- KEYS[1] the clock entry of this host; KEYS[2] the attestation; KEYS[3] the last known step of
-- this master's clock; KEYS[4..] the names of servers.
-- ARGV[1] the clock entry ('': leave it unchanged; '-': the clock has been stepped); ARGV[2] its
-- TTL in milliseconds; ARGV[3] the attestation ('': leave it unchanged), "<this clock at its
-- sample>:<largest hidden error>" in microseconds; ARGV[4] its TTL; ARGV[5] the TTL of a name
-- lease; ARGV[6] the time after a renewal in which the renewing daemon may still count votes of
-- that server; ARGV[7] the step that the daemon knows ('' for none), since an attestation is valid
-- only with the present step; ARGV[8] the id of this daemon; ARGV[9..] the servers, "<id>
-- <run_id>", or with "<database>/" before it. The first 40 bytes differ for any two databases.
-- The value of a lease is "<server> <daemon>=<time> ...", with the daemons that renewed it within
-- ARGV[6], the latest first. Daemons beyond the eighth are combined as "*", which never includes
-- the daemon that runs this script.
-- Returns "<a digit for each name> <attestation> <step> <entry>", with step and entry as found.
-- Digits: 0: the name is now leased to this server. 1: another server has it. 2: another process
-- with the same data has it, and another daemon may count its votes.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local entry = redis.call('GET', KEYS[1]) or '-'
local attestation = redis.call('GET', KEYS[2])
local step = redis.call('GET', KEYS[3]) or '-'
local function clock_of(text)
    local clock = string.match(text, '^(%d+):%d+$')
    return clock and tonumber(clock) or math.huge
end
-- An attestation from the future was made before the clock was stepped back. It does not account
-- for that step, so it must not become valid again when its time comes.
if attestation and clock_of(attestation) > now then
    redis.call('DEL', KEYS[2])
    attestation = false
end
if ARGV[1] == '-' then
    -- The attestation is older than the step, so it is deleted. Entries contain the step that their
    -- daemon knew, and are void on all hosts if the step differs. The step never expires: on a
    -- clock that jumps it could expire before the entries. It increases by at least a millisecond,
    -- which a Lua number can represent for any clock. The DEL comes first, since Redis lets a
    -- script that has already written exceed maxmemory.
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
    -- If no daemon is listed, any daemon may have renewed the lease.
    if known and renewals == '' then
        renewals = string.format(' *=%.0f', now_ms - math.max(lease - left, 0))
    end
    for daemon, at in string.gmatch(renewals or '', ' ([%x*]+)=(%d+)') do
        -- A time in the future is from before the clock was set back.
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
        -- Remove this daemon from the list, since it has left that process.
        redis.call('SET', KEYS[i], known .. others, 'PX', math.max(math.min(left, lease), 1))
        digits = digits .. '2'
    else
        digits = digits .. '1'
        -- A TTL above that of a lease means that the clock was stepped back: shorten it.
        redis.call('PEXPIRE', KEYS[i], math.max(math.min(left, lease), 1))
    end
end
return digits .. ' ' .. (attestation or '-') .. ' ' .. step .. ' ' .. entry
