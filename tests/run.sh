#!/bin/sh
# Runs test programs in the given order. Several run at a time, because most of them wait most of the
# time: on two cores, `make tests` takes 153 s with 8 jobs, 120 s with 12, and 103 s with 16. Prints a
# line for each program, then the logs of failures, and the totals last.
#
#     [JOBS=16] tests/run.sh PROGRAM[:N] ...
#
# PROGRAM:N splits the tests of a program over N processes (SHARD in tests/runner.c).
set -u

if [ "${1:-}" = --one ]; then
    program=$2 out=$3/$(echo "$2" | tr / _)
    case $program in *:*) export SHARD="${program##*:}" ;; esac
    began=$(date +%s)
    "${program%:*}" >"$out.log" 2>&1
    echo $? $(($(date +%s) - began)) >"$out.status"
    exit 0
fi

shards() {
    for each; do
        case $each in
            *:*) for k in $(seq "${each##*:}"); do echo "${each%:*}:$k/${each##*:}"; done ;;
            *) echo "$each" ;;
        esac
    done
}
# shellcheck disable=SC2046
set -- $(shards "$@")

# Time limits are only for tests that hang, and several programs run at a time here.
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-6}

# Paths of unix sockets must be short and without spaces, so $TMPDIR does not decide. After Ctrl-C the
# programs need a moment to end.
dir=$(mktemp -d /tmp/redlockd.XXXXXX)
export TMPDIR="$dir"
trap 'rm -rf "$dir"' EXIT
trap 'trap "" HUP INT TERM; sleep 1; exit 1' HUP INT TERM
# Some tests open hundreds of clients in one process.
if [ "$(ulimit -n)" -lt 4096 ] 2>/dev/null && ! ulimit -Sn 4096; then
    echo "tests: the hard limit of open files must be at least 4096: ulimit -Hn" >&2
    exit 1
fi
printf '%s\n' "$@" | xargs -P "${JOBS:-16}" -I{} sh "$0" --one {} "$dir"

passed=0 failed=0
logs=$dir/logs brief=$dir/brief
: >"$logs" >"$brief"
for program; do
    out=$dir/$(echo "$program" | tr / _)
    log=$out.log
    status= seconds=
    read -r status seconds <"$out.status"
    # Check's own summary: "98%: Checks: 57, Failures: 1, Errors: 0"
    line=$(grep -aE '^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+$' "$log" | tail -n 1)
    checks=$(echo "$line" | sed -n 's/.*Checks: \([0-9]*\),.*/\1/p')
    bad=$(echo "$line" | sed -n 's/.*Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 + \2/p')
    checks=${checks:-0} bad=$((${bad:-0}))
    # A program that crashed or ran no test has failed, whatever its summary says.
    if [ "${status:-1}" -ne 0 ] && [ $bad -eq 0 ]; then bad=1; fi
    if [ "$checks" -eq 0 ]; then checks=1 bad=1; fi
    failed=$((failed + bad)) passed=$((passed + checks - bad))
    shard=${program#"${program%:*}"}
    printf '%-28s %4d checks %3d s' "$(basename "${program%:*}")$shard" "$checks" "${seconds:-0}"
    if [ $bad -eq 0 ]; then echo; continue; fi
    echo ", $bad FAILED"
    cat "$log" >>"$logs"
    echo "FAILED: $program, status $status" >>"$brief"
    grep -aE '^[^ ]+:[0-9]+:[FE]:' "$log" >>"$brief"
done

# The brief list comes last, since often only the end of the output is kept.
cat "$logs" "$brief"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
