-- A daemon's heartbeat: leave information for other daemons on this master, and read theirs.
-- KEYS[1] the clock entry: the bounds of this master's clock that the daemons of one host know.
-- KEYS[2] the attestation of this master's clock.
-- KEYS[3] the last step of this master's clock that a daemon announced.
-- KEYS[4] the beats of this master, "<mark of its record>.<time of the first one in microseconds>.
--     <number>". Each heartbeat raises the number, so it falls only if the master goes back to
--     older data. With another record, new beats begin.
-- KEYS[5] the record of this master.
-- KEYS[6..] the name leases, one for each name of a master.
-- ARGV[1] the clock entry; '' leaves it unchanged; '-' announces a step of the clock.
-- ARGV[2] the TTL of the clock entry, in milliseconds like all TTLs here.
-- ARGV[3] the attestation, "<this master's time at the sample>:<largest hidden error>", both in
--     microseconds; '' leaves it unchanged.
-- ARGV[4] the TTL of the attestation.
-- ARGV[5] the TTL of a name lease: max_ttl and ARGV[6], so that a lease outlives every lock that is
--     granted by the votes of the leased server.
-- ARGV[6] the milliseconds after a renewal of a lease in which the daemon that renewed it can still
--     count votes of the leased server.
-- ARGV[7] the last announced step that the daemon knows, '' for none. The attestation is valid only
--     if that is still the last step on this master.
-- ARGV[8] the id of this daemon.
-- ARGV[9] the last beats of this master that the daemon has seen, '' for none. If they are later
--     than those on the master, new beats begin, so that all other daemons notice as well.
-- ARGV[10..] the server that this daemon knows by each name: "<id of its record> <run_id>", with
--     "<database>/" before it if the database is not 0. The first 40 bytes of two databases never
--     agree.
-- The value of a lease is "<server> <daemon>=<time in ms> ...": the daemons that renewed the lease
-- within the last ARGV[6], the latest first. Daemons after the eighth are combined as "*". The
-- daemon that runs this script always has an entry of its own, and takes a "*" for another daemon.
-- Returns "<a digit for each name> <beats> <attestation> <step> <entry>": the beats with this one
-- counted, and the step and the entry that this script found. The digit is 0 if the name is now
-- leased to the server of this daemon; 1 if it is leased to another server; and 2 if it is leased
-- to another process with the same data, whose votes another daemon may still count.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local entry = redis.call('GET', KEYS[1]) or '-'
local attestation = redis.call('GET', KEYS[2])
local step = redis.call('GET', KEYS[3]) or '-'
local function clock_of(text)
    local clock = string.match(text, '^(%d+):%d+$')
    return clock and tonumber(clock) or math.huge
end
-- An attestation with a time in the future was made before the clock was stepped back. It does not
-- account for that step, so it must not become valid again once the clock reaches its time.
if attestation and clock_of(attestation) > now then
    redis.call('DEL', KEYS[2])
    attestation = false
end
if ARGV[1] == '-' then
    -- The attestation is older than the step, so it is deleted. Each clock entry contains the step
    -- that its daemon knew, so the new step voids the entries of all hosts. The step has no TTL: on
    -- a clock that jumps it could expire before the entries. Each new step is at least a
    -- millisecond greater than the last one, and a Lua number can represent that difference for
    -- any clock. The DEL comes first, since Redis lets a script that has already written exceed
    -- maxmemory.
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
for i = 6, #KEYS do
    local server = ARGV[i + 4]
    local seen = redis.call('GET', KEYS[i])
    local left = redis.call('PTTL', KEYS[i])
    if left < 0 then
        left = lease
    end
    local known, renewals = string.match(seen or '', '^(%S+ %S+)(.*)$')
    local others, count, rest = '', 0, -1
    -- If no daemon is listed, any daemon may have renewed the lease, unless it was cut since (below).
    if known and renewals == '' and left > lease - fresh then
        renewals = string.format(' *=%.0f', now_ms - math.max(lease - left, 0))
    end
    for daemon, at in string.gmatch(renewals or '', ' ([%x*]+)=(%d+)') do
        -- A time in the future was written before the clock was stepped back.
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
    else
        -- Remove this daemon from the list, since it does not use the leased server. If no daemon
        -- is left, all locks that were granted by the votes of that server end within max_ttl. If
        -- the TTL is longer than that of a new lease, the clock was stepped back: shorten it.
        local most = known and others == '' and lease - fresh or lease
        redis.call('SET', KEYS[i], known and known .. others or seen, 'PX',
            math.max(math.min(left, most), 1))
        digits = digits .. (same and '2' or '1')
    end
end
local mark = string.match(redis.call('GET', KEYS[5]) or '', ' mark=(%x+)') or '-'
local head, number = string.match(redis.call('GET', KEYS[4]) or '', '^(%S+)%.(%d+)$')
local known, least = string.match(ARGV[9], '^(%S+)%.(%d+)$')
if not head or string.match(head, '^[^.]+') ~= mark or #head > 36 or #number > 15
    or (head == known and tonumber(number) < tonumber(least)) then
    head, number = string.format('%s.%.0f', mark, now), 0
end
local beats = string.format('%s.%.0f', head, number + 1)
redis.call('SET', KEYS[4], beats)
return digits .. ' ' .. beats .. ' ' .. (attestation or '-') .. ' ' .. step .. ' ' .. entry
