-- Write the record of this master, if nobody else has meanwhile; then the daemons agree on it.
-- KEYS[1] the record; ARGV[1] the record seen before, '' for none; ARGV[2] the new one but for its
-- end, ARGV[3] the quarantine in microseconds, ARGV[4] the run_id, ARGV[5] what the end of the
-- quarantine has to be at least. Answers the record there is now.
local now = redis.call('TIME')
local current = redis.call('GET', KEYS[1]) or ''
if current ~= ARGV[1] then
    return current
end
local join = math.max(now[1] * 1000000 + now[2] + ARGV[3], tonumber(ARGV[5]))
-- For one run of the server it only ever rises: the clock may have been stepped back. A new
-- quarantine must not end when the old one does, or who has seen that one through would not wait.
local run, earlier = string.match(current, ' run_id=(%w+) .* join_us=(%d+)$')
if run == ARGV[4] and tonumber(earlier) >= join then
    join = earlier + (ARGV[3] == '0' and 0 or 1)
end
-- Not tostring(), which would round.
local record = ARGV[2] .. string.format('%.0f', join)
-- A script that has written something may go on where memory is short: what was lost has to be written
-- down.
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], record)
return record
