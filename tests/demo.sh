#!/usr/bin/env bash
# What `make demo` shows: redlockd with five masters of its own, by its plain protocol.
set -euo pipefail
redlockd=$1

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
else
    bold='' dim='' green='' red='' plain=''
fi

work=$(mktemp -d)
daemon=
clean_up() {
    [ -z "$daemon" ] || { kill -TERM "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; }
    rm -rf "$work"
}
trap clean_up EXIT

die() { echo "${red}demo: $*${plain}" >&2; cat "$work/log" >&2 || true; exit 1; }
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
note() { printf '  %s%s%s\n' "$dim" "$*" "$plain"; }

# Wait until a line of the daemon's log matches, ten seconds at most.
await() {
    for _ in $(seq 1000); do
        grep -qE "$1" "$work/log" && return
        kill -0 "$daemon" 2>/dev/null || die "redlockd ended"
        sleep 0.01
    done
    die "waited in vain for: $1"
}

# Two clients, each a TCP connection of bash's own: descriptors 3 and 4.
tell() { # client, request
    local who
    [ "$1" = 3 ] && who=alice || who=bob
    printf '%s\n' "$2" >&"$1"
    printf '  %-6s> %s\n' "$who" "$2"
}
hear() { # client, what the next line has to match
    local fd=$1 who answer=
    [ "$fd" = 3 ] && who=alice || who=bob
    IFS= read -r -t 10 answer <&"$fd" || die "$who hears nothing"
    printf '  %-6s< %s%s%s\n' "$who" "$green" "$answer" "$plain"
    [[ $answer =~ $2 ]] || die "that is not the answer this demo expects ($2)"
    last=$answer
}
ask() { # client, request, what the answer has to match
    tell "$1" "$2"
    hear "$1" "$3"
}

step "redlockd --dev: a lock manager, and five Redis masters of its own to try it with"
"$redlockd" --dev 2>"$work/log" &
daemon=$!
await 'listening address='
for n in 1 2 3 4 5; do await "node_up node=dev$n"; done
port=$(sed -n 's/.*listening address=tcp:\/\/127\.0\.0\.1:\([0-9]*\).*/\1/p' "$work/log" | head -n 1)
masters=$(sed -n 's/.*masters=\([^ ]*\).*/\1/p' "$work/log" | head -n 1)
note "listening on 127.0.0.1:$port; the masters are in $masters"
exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port"

step "Alice takes the lock \"deploy\" for 30 seconds"
ask 3 'LOCK deploy 30s' '^OK [0-9a-f]{40} [0-9]+ [0-9]+ -$'
read -r _ token validity _ <<<"$last"
note "the token is her right to release it; she may rely on it for $validity ms"

step "Bob is refused, and told how long it may take; so he waits in line"
ask 4 'LOCK deploy 30s' '^HELD [0-9]+$'
tell 4 'LOCK deploy 30s WAIT 1m HOLD'

step "Two of the five masters are killed; a majority is left"
for n in 1 2; do
    pid=$(pgrep -P "$daemon" -f "$masters/$n.sock") || die "master $n is not there"
    kill -KILL "$pid"
    await "node_down node=dev$n"
    note "master $n (pid $pid) is gone"
done
ask 3 "EXTEND deploy $token 30s" '^OK [0-9a-f]{40} '
ask 3 'LOCK backup 10s' '^OK [0-9a-f]{40} '
read -r _ backup _ <<<"$last"
note "locks are extended and granted as if nothing had happened"

step "Alice releases it, and Bob has it at once: it is handed over, and now lives with his connection"
ask 3 "UNLOCK deploy $token" '^OK$'
hear 4 '^OK [0-9a-f]{40} '

step "A third master is killed: no majority, no lock, and a reason for each; Bob is warned"
pid=$(pgrep -P "$daemon" -f "$masters/3.sock") || die "master 3 is not there"
kill -KILL "$pid"
await "node_down node=dev3"
hear 4 '^! WARN deploy [0-9a-f]{40} dev3:'
ask 3 'LOCK other 10s' '^NOQUORUM 2/5 need=3 '
ask 3 "UNLOCK backup $backup" '^NOQUORUM 2/5 '
note "the release stays on its way; the lock ends with its time to live at the latest"

step "All of it is taken down again"
exec 3>&- 4>&-
kill -TERM "$daemon"
wait "$daemon" || die "redlockd did not end well"
daemon=
[ ! -e "$masters" ] || die "$masters is still there"
note "redlockd ended with status 0; its masters and their folder are gone"

cat <<END

${bold}What to try next${plain}
  $redlockd --dev                 and in another shell:
  nc 127.0.0.1 7335                     then type HELP, LOCK deploy 30s, NODES, STATS
  $redlockd -t -c redlockd.yaml.example
  less README.md docs/protocol.txt      how it works, and what it promises
END
