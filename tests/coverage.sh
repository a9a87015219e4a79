#!/bin/sh
# Prints the share of lines that the unit tests execute in the files below: the pure layers (no clock, no
# socket, see tests/tidy.sh), the configuration and parts of `redlock`; the last two are not all pure.
# Fails if the total is below LEAST-PERCENT.
#
#     coverage.sh BUILD-FOLDER LEAST-PERCENT
set -eu
build=$1 least=$2

total=0 covered=0
for source in protocol/*.c engine/*.c engine/*/*.c config/*.c server/clients/auth_throttle.c server/clients/client_address.c \
    client/c/client_request.c client/c/client_result.c client/c/hold.c \
    client/c/client_proto.c client/cli/duration.c client/cli/json.c client/cli/options.c \
    client/cli/shell.c client/cli/signals.c client/cli/table.c \
    server/admin/status_history.c server/admin/exposition.c server/admin/html.c server/admin/page.c server/admin/metrics.c server/admin/status_text.c; do
    # gcov's summary: "Lines executed:97.30% of 37"
    line=$(gcov -n -o "$build/$(dirname "$source")" "$build/${source%.c}.gcda" 2>/dev/null |
           grep -A1 "^File '$source'" | grep '^Lines executed' || true)
    percent=$(echo "$line" | sed -n 's/^Lines executed:\([0-9.]*\)% of [0-9]*$/\1/p')
    lines=$(echo "$line" | sed -n 's/.* of \([0-9]*\)$/\1/p')
    printf '%-24s %7s %% of %s lines\n' "$source" "${percent:-0.00}" "${lines:-?}"
    [ -n "$lines" ] || { echo "coverage: gcov reports nothing for $source" >&2; exit 1; }
    total=$((total + lines))
    covered=$(awk -v c="$covered" -v p="$percent" -v n="$lines" 'BEGIN { printf "%.2f", c + p * n / 100 }')
done
awk -v c="$covered" -v n="$total" -v least="$least" 'BEGIN {
    percent = 100 * c / n
    printf "%-24s %7.2f %% of %d lines; %d %% required\n", "pure layers", percent, n, least
    exit percent < least
}'
