#!/bin/sh
# How many instructions the daemon executes for a pair of LOCK and UNLOCK (tests/bench/test_instructions.c),
# against the figure in tests/bench/instructions.txt: more than 5 % above it is a failure.
# usage: tests/instructions.sh REDLOCKD TEST
# From the environment: PROFILE, and it is told in which functions; CALLGRIND_KEEP, a file for what
# callgrind wrote.
set -eu
kept=tests/bench/instructions.txt
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/redlockd" <<END
#!/bin/sh
case "\$*" in
    # Nothing but the serving daemon is counted.
    *--bootstrap*) exec "$1" "\$@" ;;
    *) exec valgrind -q --tool=callgrind --callgrind-out-file="$dir/out" "$1" "\$@" ;;
esac
END
chmod +x "$dir/redlockd"

REDLOCKD=$dir/redlockd CALLGRIND_OUT=$dir/out "$2" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
now=$(sed -n 's/^instructions per pair: //p' "$dir/log")
[ -z "${CALLGRIND_KEEP:-}" ] || cp "$dir/out.1" "$CALLGRIND_KEEP"
if [ -n "${PROFILE:-}" ]; then
    pairs=$(sed -n 's/^pairs: //p' "$dir/log")
    python3 tests/bench/profile.py "$dir/out.1" "$pairs"
fi
before=$(cat "$kept" 2>/dev/null || echo 0)
echo "instructions per pair: $now (kept in $kept: $before)"
[ "$before" = 0 ] || [ "$now" -le $((before + before / 20)) ] || {
    echo "instructions: more than 5 % above what is kept; if that is meant, write the new figure there"
    exit 1
}
