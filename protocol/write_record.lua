-- Write the record of this master by compare-and-set, so that all daemons agree on it.
-- KEYS[1] the record; ARGV[1] the expected record, '' for none; ARGV[2] the new record up to the
-- end of its quarantine, which this script appends; ARGV[3] the length of the quarantine; ARGV[4]
-- the run_id; ARGV[5] the earliest time at which the quarantine can end. Times are in microseconds,
-- by the clock of this master. Returns the record that the master has afterwards.
local now = redis.call('TIME')
local current = redis.call('GET', KEYS[1]) or ''
if current ~= ARGV[1] then
    return current
end
local join = math.max(now[1] * 1000000 + now[2] + ARGV[3], tonumber(ARGV[5]))
-- As long as the run_id stays the same, the end of the quarantine only increases, even if the clock
-- was stepped back. A new quarantine must not have the same end as the old one: a daemon that has
-- waited for the old end would not wait again.
local run, earlier = string.match(current, ' run_id=(%w+) .* join_us=(%d+)$')
if run == ARGV[4] and tonumber(earlier) >= join then
    join = earlier + (ARGV[3] == '0' and 0 or 1)
end
-- tostring() would round the number.
local record = ARGV[2] .. string.format('%.0f', join)
-- The record of a loss must be written even if memory is short. The DEL comes first, since Redis
-- lets a script that has already written exceed maxmemory.
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], record)
return record
