#!/bin/sh
# Prints the limits.h of `make sim-tight`: bounds.sh protocol/limits.h
#
# The limits in the list below become variables, the fields of struct sim_bounds (bounds.h). LIMIT_BATCH
# is the length of arrays, so it becomes a small constant. All other limits stay as they are.
set -eu
drawn='CLIENT_REQUESTS ROUNDS ADMISSION_MIN ADMISSION_START TIMERS STARTS LOCKS HOLDS RENEWALS
       BREAKS SEEKERS SURVEYS EXTENDED LINK_COMMANDS LINK_KEY_PROBES
       LINK_RELEASES LINK_VOTES LINK_KEPT LINK_PENDING_RELEASES LINK_RELEASES_UNDER_WAY'
script='s/LIMIT_BATCH = [0-9]*,/LIMIT_BATCH = 2,/
/^#endif/d'
for bound in $drawn; do
    grep -q "^    LIMIT_$bound = .*,\$" "$1" || { echo "$1 has no line for LIMIT_$bound" >&2; exit 1; }
    script="$script
/^    LIMIT_$bound = .*,\$/d"
done
sed "$script" "$1"
echo '#include "tests/sim/bounds.h"'
for bound in $drawn; do
    echo "#define LIMIT_$bound sim_bounds.$(echo "$bound" | tr '[:upper:]' '[:lower:]')"
done
echo '#endif'
