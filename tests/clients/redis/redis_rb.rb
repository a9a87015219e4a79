# The scenario of tests/clients/test_redis_clients.py with redis-rb.
require "redis"

def connect(secret = ENV["SECRET"])
  # A LOCK that is sent twice is two LOCKs, so without attempts to reconnect.
  Redis.new(host: ENV["HOST"], port: ENV["PORT"].to_i, username: "app", password: secret,
            read_timeout: 60, reconnect_attempts: 0)
end

def expect(condition, what)
  abort "failed: #{what}" unless condition
end

def ok(step)
  puts "ok #{step}"
  $stdout.flush
end

def error_of(redis, *words)
  redis.call(words)
  abort "no error: #{words}"
rescue Redis::BaseError => e
  e.message
end

a = connect
b = connect

outcome, token, validity_ms, elapsed_ms, fence = a.call(%w[LOCK x 30s])
expect outcome == "OK" && token.size == 40 && fence.nil?, "LOCK"
expect validity_ms.is_a?(Integer) && elapsed_ms.is_a?(Integer), "the fields of LOCK"
ok "lock"

outcome, hint_ms = b.call(%w[LOCK x 30s])
expect outcome == "HELD" && hint_ms > 0, "HELD"
ok "exclusion"

expect a.call(["EXTEND", "x", token, "40s"])[1] == token, "EXTEND"
ok "extend"

expect a.call(["UNLOCK", "x", token]) == "OK", "UNLOCK"
expect a.call(["UNLOCK", "x", token]) == "GONE", "UNLOCK again"
ok "unlock"

expect a.call(%w[LOCK x 2s])[0] == "OK", "LOCK"
expect b.call(%w[LOCK x 30s WAIT 30s])[0] == "OK", "WAIT"
ok "wait"

first = a.call(%w[LOCK f 30s FENCE])
expect a.call(["UNLOCK", "f", first[1]]) == "OK", "UNLOCK"
expect a.call(%w[LOCK f 30s FENCE])[4] > first[4], "FENCE"
ok "fence"

expect error_of(a, "LOCK", "x", "1ms").include?("ttl-range TTL 1ms must be between"), "the error"
ok "error"

expect error_of(connect("wrong"), "PING").include?("WRONGPASS"), "a wrong secret"
ok "secret"

expect error_of(a, "LOCK", "h", "3s", "HOLD").include?("send HELLO 3 first"), "HOLD"
ok "hold"

grants = a.pipelined { |pipeline| 64.times { |i| pipeline.call(["LOCK", "many:#{i}", "30s"]) } }
expect grants.map { |grant| grant[1] }.uniq.size == 64, "many"
ok "many"

nodes = a.call(%w[NODES]).map { |node| Hash[*node] }
expect nodes.map { |node| node["vote"] } == %w[yes yes yes], "NODES"
ok "listing"

expect error_of(a, "BREAK", "x").start_with?("NOPERM"), "BREAK"
ok "denied"

kept = a.call(%w[LOCK kept 50s])[1]
puts "restart"
$stdout.flush
expect $stdin.gets == "restarted\n", "restarted"
# The library reports the lost connection once, and connects again for the next command.
begin
  a.call(%w[STATUS kept])
rescue Redis::BaseConnectionError
  nil
end
expect a.call(%w[STATUS kept])[0] == "HELD", "STATUS"
expect a.call(["UNLOCK", "kept", kept]) == "OK", "UNLOCK"
ok "reconnect"
