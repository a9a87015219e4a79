#!/bin/sh
# The manual: pages given as arguments render without a warning in 80 columns, and say what the
# code says. Run by tests/tidy.sh.
set -u
bad=0
complain() { echo "man: $*" >&2; bad=1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The page of that name among the arguments.
page() { for each in $pages; do [ "$(basename "$each")" = "$1" ] && echo "$each"; done; }

pages=$*
for name in redlock.1 libredlock.3 redlockd.yaml.5 redlock-protocol.7 redlockd.8; do
    [ -n "$(page $name)" ] || complain "no page $name was given"
done

for each; do
    LC_ALL=C.UTF-8 groff -mandoc -Tutf8 -K utf8 -ww -rLL=80n -P -cbou "$each" \
        >"$work/rendered" 2>"$work/warnings" || complain "$each does not render"
    [ -s "$work/rendered" ] || complain "$each renders as nothing"
    ! grep . "$work/warnings" >&2 || complain "$each: groff warns as above"
    mandoc -T lint -W warning "$each" >&2 || complain "$each: mandoc warns as above"
    ! LC_ALL=C.UTF-8 grep -nE '^.{81}' "$work/rendered" >&2 ||
        complain "$each: lines longer than 80 columns"
done

# Each word of a list stands in a page.
stands_in() { # page, what they are; the words on standard input
    where=$(page "$1")
    sort -u >"$work/words"
    [ -s "$work/words" ] || complain "no $2 were found to look for"
    while read -r word; do
        grep -qF -e "$word" "$where" || echo "$word"
    done <"$work/words" >"$work/missing"
    [ ! -s "$work/missing" ] || complain "$1 does not name the $2" "$(tr '\n' ' ' <"$work/missing")"
}

sed -n 's/^ *{"\([a-z-]*\)", [a-z]*_argument.*/Fl -\1/p' server/main.c |
    stands_in redlockd.8 flags
sed -n 's/^ *{"\([a-z_.]*\)", [A-Z_]*, .*/\1/p' config/config.c | sed 's/.*\.//' |
    stands_in redlockd.yaml.5 keys
# What a reload cannot change; `nodes` is said of as a whole.
sed -n 's/^ *{"\([a-z_.]*\)", [A-Z_]*, \(OF_\|SIZED\|"\).*/\1/p' config/config.c | grep -v '^nodes\.' |
    sed 's/^/Ic /' | stands_in redlockd.8 'keys that need a restart'
sed -n 's/^ *X(VERB_[A-Z]*, "\([A-Z]*\)".*/\1/p' protocol/request.h |
    stands_in redlock-protocol.7 verbs
if [ -e client/cli/options.h ]; then
    sed -n 's/^ *X(OPTION_[A-Z_]*, "\([a-z-]*\)".*/Fl -\1/p' client/cli/options.h |
        stands_in redlock.1 options
    sed -n 's/^ *{"\([a-z]*\)", [a-z_]*,.*/\1/p' client/cli/command.c | stands_in redlock.1 commands
fi
grep -oE '\<REDLOCK_(EVENT_)?[A-Z]+\>,? ' client/c/redlock.h | grep -oE '[A-Z_]+' |
    grep -vxF -e REDLOCK_VERSION -e REDLOCK_LABEL_MAX | stands_in libredlock.3 constants

# What libredlock.3 says of functions and structures is what the header says: a compiler sees both,
# and the members of a structure are the same lines.
library=$(page libredlock.3)
grep -oE '\<redlock_[a-z_]+\(' client/c/redlock.h | tr -d '(' | sort -u >"$work/declared"
awk '
    function declare(    i, list) {
        for (i = 1; i <= count; i++)
            list = list (i > 1 ? ", " : "") argument[i]
        print type " " name "(" list ");"
        print name >names
    }
    function quoted(line,    parts, many, i) { # what stands in quotes
        many = split(line, parts, "\"")
        for (i = 2; i <= many; i += 2)
            argument[++count] = parts[i]
    }
    BEGIN { print "#include \"client/c/redlock.h\"" }
    /^\.Ft / { type = substr($0, 5); gsub(/"/, "", type) }
    /^\.F[no] redlock_/ { name = $2; count = 0; inside = /^\.Fo/ }
    /^\.Fn redlock_/ && type != "" { quoted($0); declare(); type = "" }
    /^\.Fa "/ && inside { quoted($0) }
    /^\.Fc/ { declare(); inside = 0; type = "" }
' names="$work/documented" "$library" >"$work/prototypes.c"
sort -u -o "$work/documented" "$work/documented"
diff "$work/declared" "$work/documented" >&2 ||
    complain "libredlock.3 and client/c/redlock.h have other functions (> of the page)"
${CC:-cc} -std=c11 -Wall -Wextra -Werror -I. -fsyntax-only "$work/prototypes.c" ||
    complain "libredlock.3 declares functions otherwise than client/c/redlock.h"
for structure in redlock_lock_options redlock_lock redlock_event; do
    sed -n "/^struct $structure {/,/^};/p" client/c/redlock.h |
        sed 's: */\*.*\*/::; /^ *\/\*/d; /^ *$/d' >"$work/header"
    sed -n "/^struct $structure {/,/^};/p" "$library" >"$work/page"
    diff "$work/header" "$work/page" >&2 ||
        complain "libredlock.3 has another struct $structure than client/c/redlock.h (> of the page)"
done
exit $bad
