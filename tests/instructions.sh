#!/bin/sh
# Counts the instructions of the daemon for a pair of LOCK and UNLOCK (tests/bench/test_instructions.c)
# and compares the count with tests/bench/instructions.txt. Fails if it has grown by more than 5 %.
#
#     tests/instructions.sh REDLOCKD TEST
#
# Environment variables:
#     PROFILE          if set, also print the functions with most instructions
#     CLIENTS          connections x requests in flight on each, instead of 64x1; nothing is compared
#     MISSES           if set, also print the cache misses for data
#     CALLGRIND_KEEP   copy the output of callgrind to this file
set -eu
kept=tests/bench/instructions.txt
caches=
# Simulate the caches of a processor on which only the daemon runs.
[ -z "${MISSES:-}" ] || caches="--cache-sim=yes --D1=32768,8,64 --LL=1048576,16,64"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/redlockd" <<END
#!/bin/sh
case "\$*" in
    # Count only the daemon that serves, not the earlier run with --bootstrap.
    *--bootstrap*) exec "$1" "\$@" ;;
    *) exec valgrind -q --tool=callgrind $caches --callgrind-out-file="$dir/out" "$1" "\$@" ;;
esac
END
chmod +x "$dir/redlockd"

REDLOCKD=$dir/redlockd CALLGRIND_OUT=$dir/out "$2" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
now=$(sed -n 's/^instructions per pair: //p' "$dir/log")
pairs=$(sed -n 's/^pairs: //p' "$dir/log")
[ -z "${CALLGRIND_KEEP:-}" ] || cp "$dir/out.1" "$CALLGRIND_KEEP"
[ -z "${PROFILE:-}" ] || python3 tests/bench/profile.py "$dir/out.1" "$pairs"
[ -z "$caches" ] || awk -v pairs="$pairs" '
    /^events:/ { for (i = 2; i <= NF; i++) column[$i] = i }
    /^totals:/ { printf "misses per pair: %.1f of 32 KiB, %.1f of 1 MiB\n",
                     ($column["D1mr"] + $column["D1mw"]) / pairs, ($column["DLmr"] + $column["DLmw"]) / pairs }
' "$dir/out.1"
if [ -n "${CLIENTS:-}" ]; then
    echo "instructions per pair, $CLIENTS: $now"
    exit
fi
before=$(cat "$kept" 2>/dev/null || echo 0)
echo "instructions per pair: $now (kept in $kept: $before)"
[ "$before" = 0 ] || [ "$now" -le $((before + before / 20)) ] || {
    echo "instructions: more than 5 % above the figure in $kept; if this is intended, update it"
    exit 1
}
