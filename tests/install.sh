#!/bin/sh
# `make install` and `make uninstall`: what the one brings the other takes away, and nothing else;
# everybody may read it, the documents find each other, and the linker is told of the library where it
# is to be found. And the library is whole also where packages are built with -flto.
set -u
bad=0
complain() { echo "install: $*" >&2; bad=1; }

unset DESTDIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# In place of the one that writes to /etc.
mkdir "$work/bin"
printf '#!/bin/sh\necho told >>%s/ldconfig\n' "$work" >"$work/bin/ldconfig"
chmod +x "$work/bin/ldconfig"
PATH=$work/bin:$PATH

told() { [ ! -e "$work/ldconfig" ] || wc -l <"$work/ldconfig"; }
run() { make --no-print-directory "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; complain "make $*"; }; }

# Into a package: the linker's cache is that of the machine where it is unpacked.
umask 077
run install DESTDIR="$work/package" PREFIX=/usr
umask 022
hidden=$(find "$work/package/usr" ! -perm -o=r)
[ -z "$hidden" ] || complain "not everybody may read $hidden"
[ -x "$work/package/usr/sbin/redlockd" ] || complain "no redlockd in the package"
[ -z "$(told)" ] || complain "ldconfig was run for a package"
# The documents name each other by where they are in the sources.
documents=$work/package/usr/share/doc/redlockd
for page in README.md docs/*.md; do
    for link in $(grep -o '](\(docs/\)\?[A-Za-z.]*\.\(md\|txt\|example\)' "$page"); do
        [ -e "$documents/$(dirname "$page")/${link#*(}" ] || complain "$page leads to ${link#*(}, which is not there"
    done
done
others=share/doc/redlockd/notes
touch "$work/package/usr/$others" "$work/package/usr/lib/libother.so"
run uninstall DESTDIR="$work/package" PREFIX=/usr
left=$(cd "$work/package/usr" && find . ! -type d | sort | tr '\n' ' ')
[ "$left" = "./lib/libother.so ./$others " ] || complain "uninstall leaves, of what is its own or not: $left"

# Onto this machine.
run install PREFIX="$work/prefix"
[ "$(told)" = 1 ] || complain "ldconfig was not run"
run uninstall PREFIX="$work/prefix"
[ -z "$(find "$work/prefix" ! -type d)" ] || complain "uninstall leaves files"
[ ! -e "$work/prefix/share/doc/redlockd" ] || complain "uninstall leaves its folder"
[ "$(told)" = 2 ] || complain "ldconfig was not run afterwards"

# As distributions do.
run BUILD="$work/lto" CFLAGS='-O2 -g -flto' "$work/lto/libredlock.a"
others=$(nm --defined-only --extern-only "$work/lto/libredlock.a" | grep -E ' [A-Z] ' | grep -v ' redlock_')
[ -z "$others" ] || complain "the library has names of others: $others"
nm "$work/lto/libredlock.a" | grep -q ' T redlock_acquire' || complain "the library has no code"

[ $bad -eq 0 ] && echo "install: all is well"
exit $bad
