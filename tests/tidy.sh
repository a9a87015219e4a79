#!/bin/sh
# Checks the rules of the code base: formatting, purity, and long lines; and that the documentation names
# all options, keys, verbs, reasons and log events. Runs words.sh, man.sh and packaging.sh as well. The
# arguments are the manual pages.
set -u
bad=0
complain() { echo "tidy: $*" >&2; bad=1; }

files=$(git ls-files -co --exclude-standard '*.c' '*.h' 2>/dev/null)
[ -n "$files" ] || files=$(find protocol client config engine server tests -name '*.[ch]')
# shellcheck disable=SC2086
clang-format --dry-run -Werror $files || complain "run: clang-format -i on the files above"

# Code that makes decisions is pure: it uses no clock and no socket. The code of protocol/ and of the
# engine's lower layers also allocates no memory.
for pure in protocol/*.[ch] engine/*.[ch] engine/*/*.[ch] config/acl.[ch] server/clients/auth_throttle.[ch] \
    server/clients/client_address.[ch] server/admin/status_history.[ch] server/admin/exposition.[ch] server/admin/html.[ch] \
    server/admin/page.c server/admin/metrics.c server/admin/status.h server/admin/status_text.c \
    client/c/client_request.[ch] client/c/client_result.[ch] client/c/hold.[ch] client/c/client_proto.[ch]; do
    ! grep -nE '#include <(event2|hiredis|time\.h|sys/time\.h|sys/socket\.h|yaml\.h)' "$pure" ||
        complain "$pure must be pure: no clock, no socket"
done
for pure in protocol/*.c engine/round/*.c engine/guard/*.c engine/master/*.c; do
    ! grep -nE '\b(malloc|calloc|realloc|strdup|clock_gettime|gettimeofday)\(' "$pure" ||
        complain "$pure must be pure: no malloc, no clock"
done

# The example configuration documents every key.
sed -n 's/^ *{"\([a-z_.]*\)", [A-Z_]*, .*/\1/p' config/config.c | while read -r key; do
    grep -qE "^ *(# *)?${key##*.}:" redlockd.yaml.example || echo "$key"
done | grep . && complain "redlockd.yaml.example does not document the keys above"

# The example configuration names every verb that can be granted to a user.
sed -n '/define ACL_TABLE/,/^$/p' config/acl.h | grep -o 'VERB_[A-Z]*' | cut -c6- | tr A-Z a-z |
    while read -r verb; do
    sed -n '/^#   verbs /,/^#$/p' redlockd.yaml.example | grep -qw "$verb" || echo "$verb"
done | grep . && complain "redlockd.yaml.example does not name the verbs above"

# The runbook names every reason why a master has no vote.
sed -n 's/^ *X(REASON_[A-Z_]*, "\([a-z]*\)",.*/\1/p' protocol/reason.h | while read -r reason; do
    grep -q "^| .*\`$reason\`" docs/operations/runbook.md || echo "$reason"
done | grep . && complain "docs/operations/runbook.md does not name the reasons above"

# The table of log events is complete and has no unknown events.
documented=$(sed -n '/^| event | level/,/^$/p' docs/operations/monitoring.md | cut -d'|' -f2 | grep -o '`[a-z_]*`' | tr -d '`')
cat server/*.[ch] server/*/*.[ch] | tr '\n' ' ' | grep -oE '(log_event\(|log_listener\(|X\(CLIENT_LOG_)[^;"()]*"[a-z_]+"' |
    cut -d'"' -f2 | sort -u | while read -r event; do
    echo "$documented" | grep -qx "$event" || echo "$event"
done | grep . && complain "docs/operations/monitoring.md does not name the events above"
for event in $documented; do
    grep -q "\"$event\"" server/*.[ch] server/*/*.[ch] || complain "docs/operations/monitoring.md names the event $event, which the daemon does not log"
done

# The tests, mutants, runs of spin and violations that docs/safety.md and testing.md name exist. A test is
# a TEST or a function that is defined in tests/, so a name that only a comment has does not count.
is_test() { grep -rqE "^TEST(_LOOP|_ROWS)?\\($1[,)]|^[a-z][a-z0-9_ *]*[ *]$1\\([^;]*\$|^ *def $1\\(" --include='*.[ch]' --include='*.py' tests; }
words() { tr '\n' ' ' <docs/safety.md | grep -o "$1: [^;]*" | cut -d. -f1 | grep -o '`[^`]*`' | tr -d '`' | sort -u; }
{
    grep -ohE '`[a-z0-9]+(_[a-z0-9]+){3,}`' docs/safety.md docs/design/testing.md | tr -d '`' | sort -u |
        while read -r name; do is_test "$name" || echo "$name"; done
    words mutant | while read -r name; do grep -q "mutant $name " tests/sim/mutants.sh || echo "$name"; done
    words model | while read -r name; do grep -q " run $name " tests/model.sh || echo "$name"; done
    words sim | while read -r name; do grep -qF "$name" tests/sim/*.c tests/history.c || echo "$name"; done
} | grep . && complain "docs/safety.md or testing.md names the tests above, which do not exist"

# The packages have the version of the daemon.
version=$(sed -n 's/^VERSION := //p' Makefile)
while read -r file text; do
    grep -qF -- "$text" "$file" || complain "$file has another version than the Makefile: no $text"
done <<END
client/c/redlock.h #define REDLOCK_VERSION "$version"
client/python/redlockd/__init__.py __version__ = "$version"
client/node/package.json "version": "$version",
client/go/client.go const Version = "$version"
client/go/README.md client/go@v$version
debian/changelog redlockd ($version)
END

# client/go has a test for each scenario. The other packages check this in their own tests, which need no
# toolchain.
grep '^| `' client/scenarios.md | grep -v '(Python)' | cut -d'|' -f2 | grep -o '[a-z_]*' | while read -r name; do
    grep -qE "\"$name\"[,:]" client/go/*_test.go || echo "$name"
done | grep . && complain "client/go has no test for the scenarios above"

# Documentation has lines of at most 100 columns, except for tables, URLs and the ACL that operators copy
# as one line. A page of more than 150 lines begins with a list of its sections.
pages="README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md $(find docs packaging -name '*.md') client/*.md client/*/README.md"
for page in $pages docs/protocol.txt; do
    awk -v page="$page" 'length > 100 && !/^\|/ && !/https?:/ && !/^ACL SETUSER/ { print page ":" NR ": " length " columns"; bad = 1 }
        END { exit bad }' "$page" || complain "wrap the lines above at 100 columns"
    [ "$(wc -l <"$page")" -le 150 ] || sed -n '1,30p' "$page" | grep -qE '^- \[.*\]\(#|Sections:' ||
        complain "$page has more than 150 lines and no list of its sections at the beginning"
done
# shellcheck disable=SC2086
python3 tests/links.py $pages || bad=1
sh tests/words.sh || bad=1

sh tests/man.sh "$@" || bad=1
sh tests/packaging.sh || bad=1

# Shell scripts.
for script in tests/*.sh tests/packages/*.sh packaging/*.sh protocol/*.sh server/admin/*.sh .ci/run; do
    bash -n "$script" || complain "$script has a syntax error"
done
[ $bad -eq 0 ] && echo "tidy: all is well"
exit $bad
