#!/bin/sh
# Runs the tests of client/node with Node's test runner, and prints Check's summary line, which
# tests/run.sh reads. BUILD is the folder with redlockd and redlock; NODE is the Node to test with.
#
#     [BUILD=build] [NODE=node] tests/clients/node.sh
set -u
cd "$(dirname "$0")/../.." || exit 1

BUILD=$(realpath "${BUILD:-build}")
export BUILD
log=$(mktemp)
trap 'rm -f "$log"' EXIT
checks=0 failures=0 errors=0
for file in client/node/test/*.test.js; do
    # The limit is only for a test that hangs. With --foreground, Ctrl-C also ends the test.
    timeout --foreground -s KILL 300 "${NODE:-node}" "$file" >"$log" 2>&1
    status=$?
    passed=$(grep -c '^ok ' "$log")
    failed=$(grep -c '^not ok ' "$log")
    # A file that crashed, or ran no test, has failed, whatever it has printed.
    [ $status -eq 0 ] || [ "$failed" -gt 0 ] || errors=$((errors + 1))
    [ "$passed" -gt 0 ] || errors=$((errors + 1))
    checks=$((checks + passed + failed)) failures=$((failures + failed))
    [ "$failed" -eq 0 ] && [ $status -eq 0 ] && continue
    cat "$log"
    sed -n "s|^not ok [0-9]* - |$file:1:F:|p" "$log"
done
[ $checks -gt 0 ] || checks=1 errors=1
bad=$((failures + errors))
good=$((checks > bad ? checks - bad : 0))
echo "$((100 * good / checks))%: Checks: $checks, Failures: $failures, Errors: $errors"
[ $bad -eq 0 ]
