#!/bin/sh
# The house rules that a machine can check: formatting, layers, documentation of options.
set -u
bad=0
complain() { echo "tidy: $*" >&2; bad=1; }

files=$(git ls-files -co --exclude-standard '*.c' '*.h' 2>/dev/null)
[ -n "$files" ] || files=$(find protocol config server tests -name '*.[ch]')
# shellcheck disable=SC2086
clang-format --dry-run -Werror $files || complain "run: clang-format -i on the files above"

# A file includes its own layer and lower ones, never up.
! grep -nE '#include "(config|server|tests)/' protocol/*.[ch] || complain "protocol/ includes upwards"
! grep -nE '#include "(server|tests)/' config/*.[ch] || complain "config/ includes upwards"
! grep -nE '#include "tests/' server/*.[ch] || complain "server/ includes tests"
for pure in protocol/*.[ch] server/engine*.[ch] server/call.[ch] server/operation.[ch] \
    server/resource.[ch] server/extensions.[ch] server/pool.[ch]; do
    ! grep -nE '#include <(event2|hiredis|time\.h|sys/time\.h|sys/socket\.h|yaml\.h)' "$pure" ||
        complain "$pure has to be pure: no clock, no socket"
done
for pure in protocol/*.c; do
    ! grep -nE '\b(malloc|calloc|realloc|strdup|clock_gettime|gettimeofday)\(' "$pure" ||
        complain "$pure has to be pure: no malloc, no clock"
done
# The engine may do without what lies above it.
! grep -nE '#include "server/(node|session|listener|server|clock|log)\.h"' server/engine*.[ch] \
    server/call.[ch] server/operation.[ch] server/resource.[ch] ||
    complain "the engine includes upwards"

# Every flag and every key of the configuration stands in what users read.
sed -n 's/^ *{"\([a-z-]*\)", [a-z]*_argument.*/\1/p' server/main.c | while read -r flag; do
    grep -q -- "--$flag" README.md || echo "$flag"
done | grep . && complain "README.md does not name the flags above"
sed -n 's/^ *{"\([a-z_.]*\)", [A-Z]*, .*/\1/p' config/config.c | while read -r key; do
    grep -qE "^ *(# )?${key##*.}:" redlockd.yaml.example || echo "$key"
done | grep . && complain "redlockd.yaml.example does not document the keys above"

# Paths and scripts.
for script in tests/*.sh protocol/*.sh .ci/run; do
    bash -n "$script" || complain "$script does not parse"
done
[ $bad -eq 0 ] && echo "tidy: all is well"
exit $bad
