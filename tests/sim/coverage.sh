#!/bin/sh
# Prints how much of each file of the engine the schedules reached, in lines and branches: coverage.sh
# BUILD-FOLDER. BUILD-FOLDER/*.gcov marks the branches that no schedule took: "branch ... never executed"
# or "taken 0%".
set -eu
build=$1
for source in engine/*.c engine/*/*.c; do
    gcov -b -o "$build/$(dirname "$source")" "$build/${source%.c}.gcda" 2>/dev/null |
        awk -v file="$source" '
            $0 == "File \047" file "\047" { here = 1; next }
            /^File / { here = 0 }
            here && /^Lines executed/ { split($2, l, ":"); lines = l[2]; count = $4 }
            here && /^Taken at least once/ { split($4, t, ":"); taken = t[2]; branches = $6 }
            END { printf "%-24s %7s of %4s lines  %7s of %4s branches\n", file, lines, count, taken, branches }'
done
rm -f "$build"/*.gcov
mv ./*.gcov "$build" 2>/dev/null || true
