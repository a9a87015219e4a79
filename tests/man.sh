#!/bin/sh
# Checks the manual pages given as arguments: they render without warnings in 80 columns and agree with
# the code. Run by tests/tidy.sh.
set -u
bad=0
complain() { echo "man: $*" >&2; bad=1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the path of the page with this name.
page() { for each in $pages; do [ "$(basename "$each")" = "$1" ] && echo "$each"; done; }

pages=$*
for name in redlock.1 libredlock.3 redlockd.yaml.5 redlock-protocol.7 redlockd.8; do
    [ -n "$(page $name)" ] || complain "the page $name is missing from the arguments"
done

for each; do
    LC_ALL=C.UTF-8 groff -mandoc -Tutf8 -K utf8 -ww -rLL=80n -P -cbou "$each" \
        >"$work/rendered" 2>"$work/warnings" || complain "groff cannot render $each"
    [ -s "$work/rendered" ] || complain "$each renders as an empty page"
    ! grep . "$work/warnings" >&2 || complain "$each: groff warns as above"
    mandoc -T lint -W warning "$each" >&2 || complain "$each: mandoc warns as above"
    ! LC_ALL=C.UTF-8 grep -nE '^.{81}' "$work/rendered" >&2 ||
        complain "$each: lines longer than 80 columns"
done

# Checks that each word on standard input occurs in a page.
expect_in() { # page, kind of words
    where=$(page "$1")
    sort -u >"$work/words"
    [ -s "$work/words" ] || complain "found no $2 in the sources"
    while read -r word; do
        grep -qF -e "$word" "$where" || echo "$word"
    done <"$work/words" >"$work/missing"
    [ ! -s "$work/missing" ] || complain "$1 does not name the $2" "$(tr '\n' ' ' <"$work/missing")"
}

sed -n 's/^ *{"\([a-z-]*\)", [a-z]*_argument.*/Fl -\1/p' server/main.c |
    expect_in redlockd.8 flags
sed -n 's/^ *{"\([a-z_.]*\)", [A-Z_]*, .*/\1/p' config/config.c | sed 's/.*\.//' |
    expect_in redlockd.yaml.5 keys
# Keys that a reload cannot change. The page names `nodes` as a whole, not each of its keys.
sed -n 's/^ *{"\([a-z_.]*\)", [A-Z_]*, \(OF_\|SIZED\|"\).*/\1/p' config/config.c | grep -v '^nodes\.' |
    sed 's/^/Ic /' | expect_in redlockd.8 'keys that need a restart'
sed -n 's/^ *X(VERB_[A-Z]*, "\([A-Z]*\)".*/\1/p' protocol/request.h |
    expect_in redlock-protocol.7 verbs
if [ -e client/cli/options.h ]; then
    sed -n 's/^ *X(OPTION_[A-Z_]*, "\([a-z-]*\)".*/Fl -\1/p' client/cli/options.h |
        expect_in redlock.1 options
    sed -n 's/^ *{"\([a-z]*\)", [a-z_]*,.*/\1/p' client/cli/command.c | expect_in redlock.1 commands
fi
grep -oE '\<REDLOCK_(EVENT_)?[A-Z]+\>,? ' client/c/redlock.h | grep -oE '[A-Z_]+' |
    grep -vxF -e REDLOCK_VERSION -e REDLOCK_LABEL_MAX | expect_in libredlock.3 constants

# Functions and structures in libredlock.3 match the header: the compiler checks the prototypes against
# the header, and the members of structures must be the same lines.
library=$(page libredlock.3)
grep -oE '\<redlock_[a-z_]+\(' client/c/redlock.h | tr -d '(' | sort -u >"$work/declared"
awk '
    function declare(    i, list) {
        for (i = 1; i <= count; i++)
            list = list (i > 1 ? ", " : "") argument[i]
        print type " " name "(" list ");"
        print name >names
    }
    function quoted(line,    parts, many, i) { # adds the quoted arguments of a line
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
    complain "libredlock.3 and client/c/redlock.h have different functions (> is the page)"
${CC:-cc} -std=c11 -Wall -Wextra -Werror -I. -fsyntax-only "$work/prototypes.c" ||
    complain "prototypes in libredlock.3 and client/c/redlock.h differ"
for structure in redlock_lock_options redlock_lock redlock_event; do
    sed -n "/^struct $structure {/,/^};/p" client/c/redlock.h |
        sed 's: */\*.*\*/::; /^ *\/\*/d; /^ *$/d' >"$work/header"
    sed -n "/^struct $structure {/,/^};/p" "$library" >"$work/page"
    diff "$work/header" "$work/page" >&2 ||
        complain "struct $structure differs between libredlock.3 and client/c/redlock.h (> is the page)"
done
exit $bad
