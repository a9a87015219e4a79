#!/usr/bin/env bash
# Runs the examples of the manual, as they stand there. An example is a display (.Bd) behind a
# comment that says of what kind it is:
#
#     .\" tested: shell          commands behind "$ " (and "> "), each of which has to succeed, and
#                                what they print
#     .\" tested: session        requests, and the answers of a daemon
#     .\" tested: yaml           a configuration, which has to be right
#     .\" tested: c              a program that gets the daemon's URL, and has to succeed
#     .\" tested: c-until-lost   one that ends when the daemon is stopped
#
# Numbers and tokens need not be the same as in the page, but where one token is told twice it has
# to be the same one twice; a number that stands alone in its line is meant. Of a README.md, what
# begins with "$ nc" is a session. Each example has a daemon of its own.
#
#     PAGES='...' REDLOCKD=build/redlockd [REDLOCK=build/redlock] [LIBREDLOCK=build/libredlock.a]
#     [CC=...] tests/examples.sh
#
# Examples that need a program which is not given are left out, and named.
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

# Of a busy machine nothing is learnt here: it has time to answer.
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
    fail "no daemon"
}

stop_daemon() {
    [ -n "$daemon" ] || return 0
    kill -TERM "$daemon" 2>/dev/null
    wait "$daemon"
    daemon=
}

# --- what a page says, as a pattern ---------------------------------------------------------------

pattern() {
    if [[ $1 =~ ^[0-9]+$ ]]; then
        printf '%s' "$1"
    else
        printf '%s' "$1" | sed -E 's/[][\.*^$+?(){}|/]/\\&/g; s/[0-9a-f]{40}/TOKEN/g
            s/[0-9]+/[0-9]+/g; s/TOKEN/[0-9a-f]{40}/g'
    fi
}

same() { [[ $1 =~ ^$(pattern "$2")$ ]]; } # what came, what was to come

# --- shell ----------------------------------------------------------------------------------------

run_shell() {
    local count=0 line number status
    local -a wanted=()
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
            wanted[count]=
            printf '{ %s\n' "${line#??}"
            ;;
        '> '*) printf '%s\n' "${line#??}" ;;
        *) wanted[count]+=$line$'\n' ;;
        esac
    done <"$1" >"$work/shell/script"
    # The loop ran in this shell, so that its counts are here.
    echo "} >../out.$count; echo \$? >../status.$count" >>"$work/shell/script"
    (cd "$work/shell/there" && PATH=$work/shell/bin:$PATH REDLOCK_URL=unix:$work/socket \
        timeout 60 bash ../script </dev/null >../rest 2>&1)
    for number in $(seq $count); do
        status=$(cat "$work/shell/status.$number" 2>/dev/null)
        if [ "$status" != 0 ]; then
            cat "$work/shell/rest"
            fail "command $number ended with status ${status:-of its own accord}"
            return
        fi
        wanted[number]=${wanted[number]%$'\n'}
        [ -z "${wanted[number]}" ] ||
            same "$(cat "$work/shell/out.$number")" "${wanted[number]}" || {
            cat "$work/shell/rest"
            fail "command $number printed \"$(cat "$work/shell/out.$number")\""
            return
        }
    done
}

# --- session --------------------------------------------------------------------------------------

declare -A tokens

# A token of the page stands for one of the daemon, from its first answer on.
same_answer() { # what came, what was to come
    local came told
    same "$1" "$2" || return
    came=$(grep -oE '[0-9a-f]{40}' <<<"$1" || true)
    told=$(grep -oE '[0-9a-f]{40}' <<<"$2" || true)
    [ -n "$told" ] || return 0
    [ "${tokens[$told]=$came}" = "$came" ]
}

say() {
    local line=$1 told
    for told in "${!tokens[@]}"; do
        line=${line//$told/${tokens[$told]}}
    done
    printf '%s\n' "$line" >&8
}

# The answers to tagged requests come in any order.
hear_all() {
    local i line
    local -a came=() told=("$@")
    for i in "${!told[@]}"; do
        IFS= read -r -t 60 line <&7 || { fail "no answer: ${told[i]}"; return; }
        came+=("$line")
    done
    if [[ ${told[0]} == '#'* ]]; then
        mapfile -t came < <(printf '%s\n' "${came[@]}" | sort)
        mapfile -t told < <(printf '%s\n' "${told[@]}" | sort)
    fi
    for i in "${!told[@]}"; do
        same_answer "${came[i]}" "${told[i]}" ||
            { fail "answered \"${came[i]}\", not \"${told[i]}\""; return; }
    done
}

run_session() {
    local line verb verbs=' LOCK UNLOCK EXTEND STATUS NODES STATS LOCKS CLIENTS HELP NAME PING QUIT '
    local status=0
    local -a answers=()
    tokens=()
    coproc connection { nc -U "$work/socket"; }
    local pid=${connection_PID:?}
    exec 7<&"${connection[0]}" 8>&"${connection[1]}" # it forgets them when the daemon closes
    while IFS= read -r line || [ -n "$line" ]; do
        verb=$(sed 's/^#[^ ]* //; s/ .*//' <<<"$line")
        if [[ $verbs == *" $verb "* ]]; then
            [ ${#answers[@]} -eq 0 ] || hear_all "${answers[@]}" || { status=1; break; }
            answers=()
            say "$line"
        else
            answers+=("$line")
        fi
    done <"$1"
    [ $status -ne 0 ] || [ ${#answers[@]} -eq 0 ] || hear_all "${answers[@]}" || status=1
    exec 7<&- 8>&-
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    return $status
}

# --- the others -----------------------------------------------------------------------------------

run_yaml() {
    local said
    said=$("$REDLOCKD" -t -c - <"$1" 2>&1) || said+=" (status $?)"
    [ -z "$said" ] || fail "$said"
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

run_c_until_lost() {
    local pid status
    compile "$1" || return
    timeout 60 "$work/example" "unix:$work/socket" >"$work/said" 2>&1 &
    pid=$!
    for _ in $(seq 6000); do
        { [ -s "$work/said" ] || ! kill -0 $pid 2>/dev/null; } && break
        sleep 0.01
    done
    stop_daemon
    wait $pid
    status=$?
    [ "$status: $(wc -l <"$work/said")" = "1: 2" ] ||
        { cat "$work/said"; fail "was not granted the lock, or did not hear of the loss"; }
}

# --- all of them ----------------------------------------------------------------------------------

# Each example in a file of its own, which its kind ends the name of.
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
        echo "examples: $example is left out: \$$needs is not set"
        continue
    fi
    checks=$((checks + 1))
    start_daemon && "run_${kind//-/_}" "$file" || failures=$((failures + 1))
    stop_daemon
done

# As programs of Check end, for tests/run.sh.
[ $checks -gt 0 ] || { echo "examples: there are none"; exit 1; }
echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ $failures -eq 0 ]
