#!/bin/sh
# Tests client/go, with the race detector where the toolchain has one. BUILD is the folder of the
# daemon. The last line is a summary in the form of Check, for tests/run.sh.
set -u
cd "$(dirname "$0")/../../client/go" || exit 1
case ${BUILD:=build} in /*) ;; *) BUILD=$(cd ../.. && pwd)/$BUILD ;; esac
export BUILD
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "--- FAIL: gofmt -w $unformatted" >>"$log"; status=1; }
go vet ./... || { echo "--- FAIL: go vet" >>"$log"; status=1; }

race=
[ "$(go env CGO_ENABLED)" = 1 ] && command -v "$(go env CC)" >/dev/null && race=-race
# shellcheck disable=SC2086
go test $race -count=1 -v -parallel 64 -timeout 300s ./... >>"$log" 2>&1 || status=1
grep -v -e '^=== ' "$log"

# A test with subtests is not counted, and not those that were skipped.
awk -v status=$status '
    $1 == "---" && ($2 == "PASS:" || $2 == "FAIL:") {
        result[$3] = $2
        for (name = $3; sub("/[^/]*$", "", name);) is_parent[name] = 1
    }
    END {
        for (name in result) if (!(name in is_parent)) { checks++; failures += result[name] == "FAIL:" }
        errors = status != 0 && failures == 0
        checks += errors
        bad = failures + errors
        printf "%d%%: Checks: %d, Failures: %d, Errors: %d\n",
            checks ? 100 * (checks - bad) / checks : 0, checks, failures, errors
    }' "$log"
exit $status
