#!/bin/sh
# Checks `make install` and `make uninstall`: uninstall removes exactly what install copied; all files
# are readable for every user; links between documents work; ldconfig runs only for an installation on
# this machine. Also checks that the static library is complete if built with -flto.
set -u
bad=0
complain() { echo "install: $*" >&2; bad=1; }

unset DESTDIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# A stub replaces ldconfig, which writes to /etc.
mkdir "$work/bin"
printf '#!/bin/sh\necho called >>%s/ldconfig\n' "$work" >"$work/bin/ldconfig"
chmod +x "$work/bin/ldconfig"
PATH=$work/bin:$PATH

ldconfig_calls() { [ ! -e "$work/ldconfig" ] || wc -l <"$work/ldconfig"; }
run() { make --no-print-directory "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; complain "make $*"; }; }

# An installation into a package (DESTDIR) does not run ldconfig, which updates the cache of this
# machine, not of the machine where the package is unpacked.
umask 077
run install DESTDIR="$work/package" PREFIX=/usr
umask 022
hidden=$(find "$work/package/usr" ! -perm -o=r)
[ -z "$hidden" ] || complain "not readable for all users: $hidden"
[ -x "$work/package/usr/sbin/redlockd" ] || complain "the package has no redlockd"
[ -z "$(ldconfig_calls)" ] || complain "ldconfig was run for a package"
# The documents link to each other by their paths in the sources.
documents=$work/package/usr/share/doc/redlockd
for page in README.md docs/*.md docs/*/*.md; do
    for link in $(grep -o '](\(\.\./\|docs/\)*[A-Za-z/-]*\.\(md\|txt\|example\)' "$page"); do
        [ -e "$documents/$(dirname "$page")/${link#*(}" ] || complain "$page links to ${link#*(}, which is not installed"
    done
done
# The alerts link to the installed runbook.
runbooks=$(sed -n 's|^ *runbook_url: "file://\([^#"]*\).*|\1|p' "$documents/packaging/alerts.yaml" | sort -u)
[ -n "$runbooks" ] || complain "the alerts have no runbook_url"
for page in $runbooks; do
    [ -e "$work/package$page" ] || complain "the alerts link to $page, which is not installed"
done
others=share/doc/redlockd/notes
touch "$work/package/usr/$others" "$work/package/usr/lib/libother.so"
run uninstall DESTDIR="$work/package" PREFIX=/usr
left=$(cd "$work/package/usr" && find . ! -type d | sort | tr '\n' ' ')
[ "$left" = "./lib/libother.so ./$others " ] || complain "uninstall leaves other files than expected: $left"

# Install on this machine.
run install PREFIX="$work/prefix"
[ "$(ldconfig_calls)" = 1 ] || complain "ldconfig was not run"
grep -q "file://$work/prefix/share/doc/redlockd/docs/operations/runbook.md#" \
    "$work/prefix/share/doc/redlockd/packaging/alerts.yaml" || complain "the alerts do not link to PREFIX"
run uninstall PREFIX="$work/prefix"
[ -z "$(find "$work/prefix" ! -type d)" ] || complain "uninstall leaves files"
[ ! -e "$work/prefix/share/doc/redlockd" ] || complain "uninstall leaves its documentation folder"
[ "$(ldconfig_calls)" = 2 ] || complain "uninstall did not run ldconfig"

# Distributions build with -flto. The static library must still contain machine code, and export only
# its own functions.
run BUILD="$work/lto" CFLAGS='-O2 -g -flto' "$work/lto/libredlock.a"
others=$(nm --defined-only --extern-only "$work/lto/libredlock.a" | grep -E ' [A-Z] ' | grep -v ' redlock_')
[ -z "$others" ] || complain "the library exports foreign symbols: $others"
nm "$work/lto/libredlock.a" | grep -q ' T redlock_acquire' || complain "the library has no code"

[ $bad -eq 0 ] && echo "install: all is well"
exit $bad
