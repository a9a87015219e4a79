#!/bin/sh
# Compares client/go with the same algorithm in redigo: ROUNDS=5 SECONDS_EACH=2 BUILD=build. Needs the
# packages golang-go and golang-github-gomodule-redigo-dev.
set -eu
cd "$(dirname "$0")/../../../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/src/redlockd.dev/client"
ln -s "$PWD/client/go" "$dir/src/redlockd.dev/client/go"
GO111MODULE=off GOPATH=$dir:/usr/share/gocode go build -o "$dir/bench" tests/bench/peers/go/bench.go
"$dir/bench" "exec python3 tests/clients/fixture.py --build ${BUILD:-build}" "${ROUNDS:-5}" \
    "${SECONDS_EACH:-2}"
