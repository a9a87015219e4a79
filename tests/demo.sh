#!/usr/bin/env bash
# `make demo`: shows the command `redlock` at work, with a redlockd that has five temporary masters.
set -euo pipefail
redlockd=$1 redlock=$2

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
else
    bold='' dim='' green='' red='' plain=''
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/redlock-demo.XXXX")
daemon=
clean_up() {
    local jobs
    jobs=$(jobs -p)
    # shellcheck disable=SC2086
    [ -z "$jobs" ] || kill -TERM $jobs 2>/dev/null || true
    [ -z "$daemon" ] || { kill -TERM "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; }
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' HUP INT TERM

die() { echo "${red}demo: $*${plain}" >&2; cat "$work/log" >&2 || true; exit 1; }
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
note() { printf '  %s%s%s\n' "$dim" "$*" "$plain"; }

# Waits until a line of the daemon's log matches, at most ten seconds.
await() {
    for _ in $(seq 1000); do
        grep -qE "$1" "$work/log" && return
        kill -0 "$daemon" 2>/dev/null || die "redlockd ended"
        sleep 0.01
    done
    die "the log has no line that matches: $1"
}

# Formats words as a user would type them in a shell.
typed() {
    local word
    for word; do
        case $word in
            *[!a-zA-Z0-9_./:=-]*) printf " '%s'" "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
}
# Runs redlock as the named person, shows the command and its output, and checks the exit code.
as() { # person, exit code, words
    local person=$1 expected=$2 code=0
    shift 2
    printf '  %-6s$ redlock%s\n' "$person" "$(typed "$@")"
    "$redlock" "$@" >"$work/$person" 2>&1 || code=$?
    show "$person"
    [ "$code" = "$expected" ] || die "redlock $* exited with $code; this demo expects $expected"
}
# Starts redlock in the background and sets $job to its pid. finished() waits for its end.
as_job() { # person, words
    local person=$1
    shift
    printf '  %-6s$ redlock%s &\n' "$person" "$(typed "$@")"
    "$redlock" "$@" >"$work/$person" 2>&1 &
    job=$!
}
finished() { # person, job, exit code
    local code=0
    wait "$2" || code=$?
    show "$1"
    [ "$code" = "$3" ] || die "$1's job exited with $code; this demo expects $3"
}
show() {
    while IFS= read -r line; do
        printf '  %-6s  %s%s%s\n' "$1" "$green" "$line" "$plain"
    done <"$work/$1"
}
# Waits until the output of a job matches, at most ten seconds.
await_output() { # person, pattern
    for _ in $(seq 1000); do
        grep -qE "$2" "$work/$1" && return
        sleep 0.01
    done
    die "the job of $1 did not print: $2"
}
await_stats() { # pattern
    for _ in $(seq 1000); do
        "$redlock" stats | grep -qE "$1" && return
        sleep 0.01
    done
    die "STATS does not show: $1"
}
kill_master() { # number
    local pid
    pid=$(pgrep -P "$daemon" -f "$masters/$1.sock") || die "master $1 is not running"
    kill -KILL "$pid"
    await "node_down node=dev$1"
    note "master $1 (pid $pid) was killed"
}

step "redlockd --dev: a lock manager with five temporary Redis masters"
"$redlockd" --dev 2>"$work/log" &
daemon=$!
await 'listening address='
for n in 1 2 3 4 5; do await "node_up node=dev$n"; done
port=$(sed -n 's/.*listening address=tcp:\/\/127\.0\.0\.1:\([0-9]*\).*/\1/p' "$work/log" | head -n 1)
masters=$(sed -n 's/.*masters="\{0,1\}\(.*[^"]\)"\{0,1\} count=.*/\1/p' "$work/log" | head -n 1)
note "listening on 127.0.0.1:$port; the masters are in $masters"
export REDLOCK_URL=tcp://127.0.0.1:$port

step "Alice deploys under the lock \"deploy\"; other clients cannot get it meanwhile"
touch "$work/alice"
as_job alice run deploy -- sh -c 'echo deploying; while [ ! -e "$0" ]; do sleep 0.05; done; echo done' "$work/go"
alice=$job
await_output alice deploying
as bob 1 run --nonblock deploy -- echo "this does not run"

step "Bob waits in the queue, without polling"
touch "$work/bob"
as_job bob run --wait 1m --fence deploy -- sh -c 'echo "my turn; the store can refuse requests below fence $REDLOCK_FENCE"'
bob=$job
await_stats ' waiting=1 '
as carol 0 locks deploy

step "Two of the five masters are killed; a majority is left, and locks are still granted"
kill_master 1
kill_master 2
as carol 0 lock --ttl 10s backup
token=$(cat "$work/carol")
as carol 0 unlock backup "$token"

step "Alice is done, and the daemon hands the lock over to Bob at once"
touch "$work/go"
finished alice "$alice" 0
finished bob "$bob" 0

step "A third master is killed while a command runs: the command is killed before its lock expires"
touch "$work/dave"
as_job dave run --ttl 2s migrate -- sh -c 'echo migrating; exec sleep 600'
dave=$job
await_output dave migrating
kill_master 3
finished dave "$dave" 122
as carol 123 run --nonblock migrate -- echo "this does not run"

step "The demo stops redlockd"
kill -TERM "$daemon"
wait "$daemon" || die "redlockd did not exit with status 0"
daemon=
[ ! -e "$masters" ] || die "$masters still exists"
note "redlockd exited with status 0 and removed its masters and their folder"

cat <<END

${bold}What to try next${plain}
  $redlockd --dev                       and in another shell:
  $redlock run deploy -- top            the same in a third: it waits in the queue
  $redlock help
  nc 127.0.0.1 7335                           then type HELP, LOCK deploy 30s, NODES, STATS
  man -l docs/man/redlock.1                   and README.md, docs/protocol.txt, docs/clients.md
END
