#!/bin/sh
# Runs fuzz targets, at most two at a time. Prints a line for each, and the log of each failure.
#
#     fuzz.sh smoke BUILD TARGET...           the committed inputs, and a fixed number of runs
#     fuzz.sh long BUILD SECONDS TARGET...    for SECONDS; new inputs are kept in BUILD/found
#
# TARGET is a program BUILD/tests/fuzz/fuzz_NAME. Its inputs are in tests/fuzz/corpus/NAME. Inputs that
# fail are written to BUILD/crashes.
set -u

# The number of runs of a smoke test. Each target takes some seconds for it.
runs_of() {
    case $1 in
        request | resp) echo 200000 ;;
        commands) echo 50000 ;;
        client) echo 20000 ;;
        config) echo 5000 ;;
        *) echo 1000 ;;
    esac
}

if [ "$1" = --one ]; then
    mode=$2 build=$3 seconds=$4 dir=$5 program=$6
    name=$(basename "$program") name=${name#fuzz_}
    corpus=tests/fuzz/corpus/$name dictionary=tests/fuzz/$name.dict
    mkdir -p "$build/crashes" "$build/found/$name" "$dir/$name"
    set -- -artifact_prefix="$build/crashes/$name-" -print_final_stats=1 -max_len=2500 -reload=0 -verbosity=0
    [ -f "$dictionary" ] && set -- "$@" -dict="$dictionary"
    if [ "$mode" = smoke ]; then
        set -- "$@" -seed=1 -runs="$(runs_of "$name")" "$dir/$name"
    else
        set -- "$@" -timeout=60 -max_total_time="$seconds" "$build/found/$name"
    fi
    # Without address randomisation, the same seed gives the same runs.
    fixed='setarch -R'
    $fixed true 2>/dev/null || fixed=
    $fixed "$program" "$@" "$corpus" >"$dir/$name.log" 2>&1
    echo $? >"$dir/$name.status"
    exit 0
fi

mode=$1 build=$2 seconds=0
shift 2
if [ "$mode" = long ]; then seconds=$1; shift; fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf '%s\n' "$@" | xargs -P 2 -I{} sh "$0" --one "$mode" "$build" "$seconds" "$dir" {}

failed=0
for program; do
    name=$(basename "$program") name=${name#fuzz_}
    log=$dir/$name.log
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    found=$(sed -n 's/^stat::new_units_added: *//p' "$log")
    status=$(cat "$dir/$name.status")
    printf '%-28s %7d runs, %d new inputs' "fuzz_$name" "${runs:-0}" "${found:-0}"
    if [ "${status:-1}" -eq 0 ] && [ "${runs:-0}" -gt 0 ]; then echo; continue; fi
    echo ', FAILED'
    cat "$log"
    input=$(sed -n "s/.*Test unit written to //p" "$log" | tail -n 1)
    [ -z "$input" ] || echo "fuzz: replay with: $program $input"
    failed=$((failed + 1))
done
[ $failed -eq 0 ]
