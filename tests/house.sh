#!/bin/sh
# Checks the dependencies between layers (docs/design/architecture.md): house.sh BUILD-FOLDER.
set -u
build=$1
bad=0
complain() { echo "house: $*" >&2; bad=1; }

# --- 1. includes only from lower layers ---

# may FOLDERS FILES...: complains unless every project header that FILES include matches FOLDERS, an
# extended regular expression.
may() {
    folders=$1
    shift
    ! grep -nE '#include "' "$@" | grep -vE "#include \"($folders)" ||
        complain "the files above may include from $folders only"
}
generated='scripts\.h|page_template\.h'
may "protocol/|$generated" protocol/*.[ch]
# The check of the TTL range needs the validity arithmetic, which works on numbers only.
may 'config/|protocol/|engine/round/validity\.h' config/*.[ch]
round='engine/(timer|client|histogram|pool|stats)\.h|engine/round/|protocol/'
guard="engine/guard/|$round"
master="engine/master/|$guard"
flight="engine/flight/|$master"
locks="engine/locks/|$flight"
may "$round" engine/round/*.[ch]
may "$guard" engine/guard/*.[ch]
may "$master" engine/master/*.[ch]
may "$flight" engine/flight/*.[ch]
may "$locks" engine/locks/*.[ch]
may 'engine/|protocol/' engine/*.[ch]
may 'client/c/|protocol/' client/c/*.[ch]
may 'client/|protocol/' client/cli/*.[ch]

# --- 2. the server includes only the engine's public headers, in which struct engine is opaque ---

seen='engine/(engine|view|histogram|pool)\.h|engine/round/node_set\.h'
may "server/|config/|$seen|protocol/|$generated" server/*.[ch] server/*/*.[ch]

# --- 3. no circular dependencies between object files ---

# Prints pairs: an object that needs a symbol, and the object that defines it.
arrows() {
    nm -A "$@" | awk '
        { file = $1; sub(/:.*/, "", file) }
        $(NF - 1) == "U" { needs[file, $NF]; next }
        NF >= 3 && $(NF - 1) ~ /^[TDBRCVWGS]$/ { defined[$NF] = file }
        END {
            for (need in needs) {
                split(need, part, SUBSEP)
                to = defined[part[2]]
                if (to != "" && to != part[1])
                    print part[1], to
            }
        }' | sed "s|$build/||g" | sort -u
}
objects=
for source in protocol/*.c config/*.c engine/*.c engine/*/*.c server/*.c server/*/*.c client/cli/*.c; do
    [ -e "$build/${source%.c}.o" ] && objects="$objects $build/${source%.c}.o"
done
library=
for source in client/c/*.c; do
    [ -e "$build/client/pic/${source%.c}.o" ] && library="$library $build/client/pic/${source%.c}.o"
done
for set in "$objects" "$library"; do
    [ -n "$set" ] || { complain "$build has no objects; build first"; continue; }
    # shellcheck disable=SC2086
    arrows $set | tsort 2>&1 >/dev/null | sed 's/^tsort: -: input contains a loop:/a circular dependency:/; s/^tsort: /  /' |
        grep . && complain "the files above depend on each other"
done

# --- 4. only a few basic headers are included by more than a dozen files ---

everywhere='protocol/(limits|units|text|request|reply|reason)\.h|engine/round/node_set\.h|server/(clock|log)\.h'
grep -ohE '#include "(protocol|config|engine|server|client)/[^"]*"' protocol/*.[ch] config/*.[ch] engine/*.[ch] \
    engine/*/*.[ch] server/*.[ch] server/*/*.[ch] client/*/*.[ch] | cut -d'"' -f2 | grep -vE "^($everywhere)$" |
    sort | uniq -c | awk '$1 > 12 { print "  " $2 " is included by " $1 " files" }' | grep . &&
    complain "the headers above are included by more than a dozen files"

[ $bad -eq 0 ] && echo "house: all is well"
exit $bad
