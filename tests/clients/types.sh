#!/bin/sh
# Compiles client/node/test/types.mts with the TypeScript of `make check-clients`, and prints Check's
# summary line. BUILD is the folder of the build.
set -u
cd "$(dirname "$0")/../.." || exit 1

npm=$(realpath "${BUILD:-build}/clients/npm/node_modules") || exit 1
if "$npm/.bin/tsc" --strict --noEmit --module nodenext --target es2022 --typeRoots "$npm/@types" \
    --types node client/node/test/types.mts; then
    echo '100%: Checks: 1, Failures: 0, Errors: 0'
else
    echo '0%: Checks: 1, Failures: 1, Errors: 0'
    exit 1
fi
