# The scenario of tests/clients/test_redis_clients.py with redis-cli. For bash, which has coproc.
set -eu

export REDISCLI_AUTH=$SECRET

# Runs one command. Prints the elements of the reply, one per line.
cli() { redis-cli -h "$HOST" -p "$PORT" --user app --no-auth-warning "$@"; }
field() { sed -n "$1p"; }
ok() { echo "ok $1"; }
fail() { echo "failed: $*"; exit 1; }

reply=$(cli LOCK x 30s)
token=$(echo "$reply" | field 2)
[ "$(echo "$reply" | field 1) ${#token}" = "OK 40" ] || fail "$reply"
[ "$(echo "$reply" | field 3)" -gt 0 ] || fail "$reply"
ok lock

reply=$(cli LOCK x 30s)
[ "$(echo "$reply" | field 1)" = HELD ] && [ "$(echo "$reply" | field 2)" -gt 0 ] || fail "$reply"
ok exclusion

reply=$(cli EXTEND x "$token" 40s)
[ "$(echo "$reply" | field 2)" = "$token" ] || fail "$reply"
ok extend

[ "$(cli UNLOCK x "$token")" = OK ] || fail UNLOCK
[ "$(cli UNLOCK x "$token")" = GONE ] || fail UNLOCK
ok unlock

[ "$(cli LOCK x 2s | field 1)" = OK ] || fail LOCK
[ "$(cli LOCK x 30s WAIT 30s | field 1)" = OK ] || fail WAIT
ok wait

reply=$(cli LOCK f 30s FENCE)
[ "$(cli UNLOCK f "$(echo "$reply" | field 2)")" = OK ] || fail UNLOCK
[ "$(cli LOCK f 30s FENCE | field 5)" -gt "$(echo "$reply" | field 5)" ] || fail FENCE
ok fence

# With -e, an error is exit status 1.
if reply=$(cli -e LOCK x 1ms 2>&1); then fail "$reply"; fi
case $reply in *'ttl-range TTL 1ms must be between '*) ok error ;; *) fail "$reply" ;; esac

reply=$(REDISCLI_AUTH=wrong cli PING 2>&1) || :
case $reply in *'WRONGPASS wrong secret'*) ok secret ;; *) fail "$reply" ;; esac

# LOST is shown between the replies.
coproc hold { cli -3 --show-pushes yes; }
hold_pid=$hold_PID # bash unsets its own variable at the end of the process
say() { echo "$*" >&"${hold[1]}"; }
hear() { read -r -t 60 line <&"${hold[0]}" || fail "no reply after: $line"; }
line=
say LOCK h 3s HOLD
hear; [ "$line" = OK ] || fail "$line"
hear; token=$line
hear; hear; hear
[ "$(cli UNLOCK h "$token")" = OK ] || fail UNLOCK
while :; do
    say PING
    hear
    case $line in *LOST*) break ;; esac
done
ok hold
exec {hold[1]}>&-
wait "$hold_pid"

# --pipe sends all commands at once and counts the replies. It does not show them.
reply=$(for i in $(seq 64); do
    name=many:$i
    printf '*3\r\n$4\r\nLOCK\r\n$%d\r\n%s\r\n$3\r\n30s\r\n' ${#name} "$name"
done | cli --pipe)
case $reply in *'errors: 0, replies: 64'*) ;; *) fail "$reply" ;; esac
reply=$(cli -3 --no-raw LOCKS)
[ "$(echo "$reply" | grep -c '"resource" => "many:')" = 64 ] || fail "$reply"
ok many

# Over RESP3, a listing is readable: one line for each field.
reply=$(cli -3 --no-raw NODES)
[ "$(echo "$reply" | grep -c '"vote" => "yes"')" = 3 ] || fail "$reply"
ok listing

reply=$(cli BREAK x 2>&1) || :
case $reply in 'NOPERM '*) ok denied ;; *) fail "$reply" ;; esac

# One redis-cli, before and after the restart. It connects again only if its input is a terminal.
token=$(cli LOCK kept 50s | field 2)
export TERM=dumb
interactive="redis-cli -h $HOST -p $PORT --user app --no-auth-warning"
coproc session { script -qefc "$interactive" /dev/null; }
session_pid=$session_PID
say() { echo "$*" >&"${session[1]}"; }
# Reads what the terminal shows until a line contains the text.
hear() {
    while read -r -t 60 line <&"${session[0]}"; do
        case $line in *"$1"*) return ;; esac
    done
    fail "no $1"
}
say PING
hear PONG
echo restart
read -r line && [ "$line" = restarted ] || fail "$line"
# redis-cli reports the lost connection once, and connects again for the next command.
say STATUS kept
hear 'Server closed the connection'
say STATUS kept
hear HELD
say UNLOCK kept "$token"
hear OK
say exit
wait "$session_pid"
ok reconnect
