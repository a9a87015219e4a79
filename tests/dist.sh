#!/bin/sh
# Checks the source tarball (`make distcheck`): it has every file of the repository, and where git does
# not work it builds, passes `make tidy`, installs, uninstalls and makes the same tarball again. A
# program finds the installed library with pkg-config.
set -u
bad=0
complain() { echo "distcheck: $*" >&2; bad=1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
unset DESTDIR MAKEFLAGS MFLAGS MAKEOVERRIDES
run() { make --no-print-directory "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; complain "make $* fails"; }; }

run dist BUILD="$work/first"
tarball=$(ls "$work"/first/redlockd-*.tar.gz)
release=$(basename "$tarball" .tar.gz)
version=$(sed -n 's/^VERSION := //p' Makefile)
[ "$release" = "redlockd-$version" ] || complain "the tarball of version $version is $release.tar.gz"
head -1 debian/changelog | grep -qF "redlockd ($version) " ||
    complain "debian/changelog does not begin with version $version"

mkdir "$work/bin"
printf '#!/bin/sh\nexit 127\n' >"$work/bin/git"
chmod +x "$work/bin/git"
tar -xzf "$tarball" -C "$work" || complain "tar cannot read the tarball"
PATH=$work/bin:$PATH
cd "$work/$release" || exit 1
(find . -type f | sed 's|^\./||' | grep -vx MANIFEST | LC_ALL=C sort) | cmp - MANIFEST ||
    complain "the tarball has other files than its MANIFEST"

run -j2 BUILD=build/check CFLAGS='-O1 -g' all tidy
run BUILD=build/check CFLAGS='-O1 -g' installed
[ "$(build/check/redlockd -V | grep -cF "$version")" = 1 ] || complain "redlockd -V does not print $version"
run dist
cmp "$tarball" "build/$release.tar.gz" || complain "the tarball made from the tarball differs"
run dist SOURCE_DATE_EPOCH=1000000000 BUILD=build/dated
[ "$(tar -tvzf "build/dated/$release.tar.gz" --utc | grep -vc ' 2001-09-09 ')" = 0 ] ||
    complain "files of the tarball are not dated SOURCE_DATE_EPOCH"

# A program finds the library of each prefix.
cat >"$work/program.c" <<'END'
#include <redlock.h>
int main(void) { return redlock_acquire == 0; }
END
run BUILD=build/check CFLAGS='-O1 -g' DESTDIR="$work/root" PREFIX=/usr LIBDIR=/usr/lib/triplet install
export PKG_CONFIG_PATH="$work/root/usr/lib/triplet/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$work/root"
# shellcheck disable=SC2046
gcc -o "$work/program" "$work/program.c" $(pkg-config --cflags --libs redlock) &&
    LD_LIBRARY_PATH="$work/root/usr/lib/triplet" "$work/program" || complain "pkg-config does not find the library"
[ "$(pkg-config --modversion redlock)" = "$version" ] || complain "pkg-config has another version"
grep -q '^ExecStart=/usr/sbin/redlockd ' "$work/root/usr/lib/systemd/system/redlockd.service" ||
    complain "the unit of PREFIX=/usr starts another program"

[ $bad -eq 0 ] && echo "distcheck: all is well"
exit $bad
