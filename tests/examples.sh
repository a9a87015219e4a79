#!/usr/bin/env bash
# Runs the examples of the manual unchanged. An example is a display (.Bd) after a comment that names
# its kind:
#
#     .\" tested: shell          commands after "$ " (continued after "> "), which must succeed, and
#                                their expected output
#     .\" tested: session        requests, and the replies of a daemon
#     .\" tested: yaml           a valid configuration
#     .\" tested: c              a program that gets the daemon's URL and must succeed
#     .\" tested: c-until-lost   a program that ends when the daemon stops, or falls silent
#
# The output is allowed to differ from the page in numbers and tokens, but not in a number that is
# alone on its line. Where the page shows a token twice, the daemon must send the same token twice. In
# README.md, a block that begins with "$ nc" is a session. Each example runs with its own daemon.
#
#     PAGES='...' REDLOCKD=build/redlockd [REDLOCK=build/redlock] [LIBREDLOCK=build/libredlock.a]
#     [CC=...] tests/examples.sh
#
# Examples whose program is not given are skipped and listed.
set -uo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
daemon=
checks=0 failures=0

clean_up() {
    stop_daemon
    rm -rf "$work"
}
trap clean_up EXIT

fail() { echo "examples: $example: $*"; return 1; }

# --- a daemon -------------------------------------------------------------------------------------

# Generous timeouts: the speed of the machine is not tested here.
start_daemon() {
    cat >"$work/daemon.yaml" <<END
listen: ["unix:$work/socket"]
locks: {clock_drift_margin: 1s}
rounds: {node_timeout: 2s}
END
    "$REDLOCKD" --dev -c "$work/daemon.yaml" >"$work/log" 2>&1 &
    daemon=$!
    for _ in $(seq 3000); do
        votes=$(printf 'NODES\nQUIT\n' | nc -U "$work/socket" 2>/dev/null | grep -c ' vote=yes ')
        [ "$votes" -eq 5 ] && return
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.01
    done
    cat "$work/log"
    fail "the daemon does not start"
}

stop_daemon() {
    [ -n "$daemon" ] || return 0
    kill -TERM "$daemon" 2>/dev/null
    kill -CONT "$daemon" 2>/dev/null # if it is frozen
    wait "$daemon"
    daemon=
}

# --- patterns -------------------------------------------------------------------------------------

pattern() {
    if [[ $1 =~ ^[0-9]+$ ]]; then
        printf '%s' "$1"
    else
        printf '%s' "$1" | sed -E 's/[][\.*^$+?(){}|/]/\\&/g; s/[0-9a-f]{40}/TOKEN/g
            s/[0-9]+/[0-9]+/g; s/TOKEN/[0-9a-f]{40}/g'
    fi
}

same() { [[ $1 =~ ^$(pattern "$2")$ ]]; } # actual text, text of the page

# --- shell ----------------------------------------------------------------------------------------

run_shell() {
    local count=0 line number status
    local -a outputs=()
    rm -rf "$work/shell"
    mkdir -p "$work/shell/bin" "$work/shell/there"
    ln -s "$(realpath "$REDLOCKD")" "$work/shell/bin/redlockd"
    [ -z "${REDLOCK:-}" ] || ln -s "$(realpath "$REDLOCK")" "$work/shell/bin/redlock"
    for stub in backup deploy; do
        printf '#!/bin/sh\n' >"$work/shell/there/$stub"
        chmod 755 "$work/shell/there/$stub"
    done
    while IFS= read -r line; do
        case $line in
        '$ '*)
            [ $count -eq 0 ] || echo "} >../out.$count; echo \$? >../status.$count"
            count=$((count + 1))
            outputs[count]=
            printf '{ %s\n' "${line#??}"
            ;;
        '> '*) printf '%s\n' "${line#??}" ;;
        *) outputs[count]+=$line$'\n' ;;
        esac
    done <"$1" >"$work/shell/script"
    # The loop reads from a redirection, not from a pipe, so that its variables are set in this shell.
    echo "} >../out.$count; echo \$? >../status.$count" >>"$work/shell/script"
    (cd "$work/shell/there" && PATH=$work/shell/bin:$PATH REDLOCK_URL=unix:$work/socket \
        timeout 60 bash ../script </dev/null >../rest 2>&1)
    for number in $(seq $count); do
        status=$(cat "$work/shell/status.$number" 2>/dev/null)
        if [ "$status" != 0 ]; then
            cat "$work/shell/rest"
            fail "command $number ended with status ${status:-unknown: the shell did not reach it}"
            return
        fi
        outputs[number]=${outputs[number]%$'\n'}
        [ -z "${outputs[number]}" ] ||
            same "$(cat "$work/shell/out.$number")" "${outputs[number]}" || {
            cat "$work/shell/rest"
            fail "command $number printed \"$(cat "$work/shell/out.$number")\""
            return
        }
    done
}

# --- session --------------------------------------------------------------------------------------

declare -A tokens

# Compares a reply with the page. The first reply in which a token of the page occurs tells the actual
# token; all later replies must have the same one. The same holds for a slot, the last word of a reply.
same_reply() { # actual reply, reply of the page
    local what actual expected
    same "$1" "$2" || return
    for what in '[0-9a-f]{40}' ' [a-z]+#[0-9]+$'; do
        actual=$(grep -oE "$what" <<<"$1" || true)
        expected=$(grep -oE "$what" <<<"$2" || true)
        [ -z "$expected" ] || [ "${tokens[$expected]=$actual}" = "$actual" ] || return
    done
}

send_request() {
    local line=$1 expected
    for expected in "${!tokens[@]}"; do
        line=${line//$expected/${tokens[$expected]}}
    done
    printf '%s\n' "$line" >&8
}

# Reads all expected replies. Replies to tagged requests may arrive in any order.
read_replies() {
    local i line
    local -a actual=() expected=("$@")
    for i in "${!expected[@]}"; do
        IFS= read -r -t 60 line <&7 || { fail "no reply; expected: ${expected[i]}"; return; }
        actual+=("$line")
    done
    if [[ ${expected[0]} == '#'* ]]; then
        mapfile -t actual < <(printf '%s\n' "${actual[@]}" | sort)
        mapfile -t expected < <(printf '%s\n' "${expected[@]}" | sort)
    fi
    for i in "${!expected[@]}"; do
        same_reply "${actual[i]}" "${expected[i]}" ||
            { fail "replied \"${actual[i]}\", not \"${expected[i]}\""; return; }
    done
}

run_session() {
    local line verb verbs=' LOCK UNLOCK EXTEND STATUS NODES STATS LOCKS CLIENTS HELP NAME PING QUIT '
    local status=0
    local -a replies=()
    tokens=()
    coproc connection { nc -U "$work/socket"; }
    local pid=${connection_PID:?}
    exec 7<&"${connection[0]}" 8>&"${connection[1]}" # bash unsets the array when the connection ends
    while IFS= read -r line || [ -n "$line" ]; do
        verb=$(sed 's/^#[^ ]* //; s/ .*//' <<<"$line")
        if [[ $verbs == *" $verb "* ]]; then
            [ ${#replies[@]} -eq 0 ] || read_replies "${replies[@]}" || { status=1; break; }
            replies=()
            send_request "$line"
        else
            replies+=("$line")
        fi
    done <"$1"
    [ $status -ne 0 ] || [ ${#replies[@]} -eq 0 ] || read_replies "${replies[@]}" || status=1
    exec 7<&- 8>&-
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    return $status
}

# --- configurations and C programs ----------------------------------------------------------------

run_yaml() {
    local output
    output=$("$REDLOCKD" -t -c - <"$1" 2>&1) || output+=" (status $?)"
    [ -z "$output" ] || fail "$output"
}

compile() {
    cp "$1" "$work/example.c"
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE -I"$repository/client/c" \
        -o "$work/example" "$work/example.c" "$LIBREDLOCK" || fail "does not compile"
}

run_c() {
    local status
    compile "$1" || return
    timeout 60 "$work/example" "unix:$work/socket" >"$work/said" 2>&1 ||
        { status=$?; cat "$work/said"; fail "ended with status $status"; }
}

# The program must end with status 1 and two lines: when the daemon stops, and, built with a shorter
# TTL, when the daemon is frozen.
run_c_until_lost() {
    compile "$1" && loses_the_lock stop_daemon || return
    start_daemon && sed 's/30000/10000/' "$1" >"$work/short.c" && compile "$work/short.c" || return
    loses_the_lock freeze_daemon
}

freeze_daemon() { kill -STOP "$daemon"; }

loses_the_lock() {
    local pid status
    timeout 60 "$work/example" "unix:$work/socket" >"$work/said" 2>&1 &
    pid=$!
    for _ in $(seq 6000); do
        { [ -s "$work/said" ] || ! kill -0 $pid 2>/dev/null; } && break
        sleep 0.01
    done
    $1
    wait $pid
    status=$?
    [ "$status: $(wc -l <"$work/said")" = "1: 2" ] ||
        { cat "$work/said"; fail "was not granted the lock, or did not report its loss ($1)"; }
}

# --- running the examples -------------------------------------------------------------------------

# Writes each example to a file whose suffix is its kind.
extract() {
    local name
    name=$(basename "$1")
    if [[ $1 == *.md ]]; then
        awk -v to="$work/examples/$name" '
            /^```/ { file = ""; first = !inside; inside = !inside; next }
            first && /^\$ nc / { file = to "-" ++count ".session" }
            file != "" && !first { print >file }
            { first = 0 }' "$1"
        return
    fi
    awk -v to="$work/examples/$name" '
        /^\.\\" tested: / { kind = $3; next }
        /^\.Bd / && kind != "" { file = to "-" ++count "." kind; kind = ""; next }
        /^\.Ed/ { file = "" }
        file == "" { next }
        {
            gsub(/\\-/, "-")
            gsub(/\\&/, "")
            gsub(/\\\(aq/, "\047")
            gsub(/\\\(ga/, "`")
            gsub(/\\\(ha/, "^")
            gsub(/\\\(ti/, "~")
            gsub(/\\e/, "\\")
            print >file
        }' "$1"
}

mkdir "$work/examples"
for each in $PAGES; do
    extract "$each"
done

for file in "$work/examples"/*; do
    example=$(basename "$file")
    kind=${example##*.}
    case $example in
    redlock.1-*) needs=REDLOCK ;;
    libredlock.3-*) needs=LIBREDLOCK ;;
    *) needs=REDLOCKD ;;
    esac
    if [ -z "${!needs:-}" ]; then
        echo "examples: skipped $example: \$$needs is not set"
        continue
    fi
    checks=$((checks + 1))
    start_daemon && "run_${kind//-/_}" "$file" || failures=$((failures + 1))
    stop_daemon
done

# The summary has the format of Check, for tests/run.sh.
[ $checks -gt 0 ] || { echo "examples: no examples found"; exit 1; }
echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ $failures -eq 0 ]
