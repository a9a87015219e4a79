#!/bin/sh
# Checks the Debian packages (`make packages`): builds them twice, which must give the same bytes, and
# goes through the life of a package in a Debian system of its own, with systemd as process 1 in
# namespaces (tests/packages/). debootstrap makes that system from the mirror in this machine's
# /etc/apt; it is kept in build/packages for a day.
#
# With the argument trixie (`make packages-trixie`), the packages are built in Debian 13 and live there.
set -u
release=${1:-}
name=packages
. tests/packages/namespace.sh
bad=0
complain() { echo "packages: $*" >&2; bad=1; }
sh tests/deps.sh deb debootstrap iproute2 python3-yaml redis-server || exit 1

work=$PWD/build/packages${release:+/$release}
base=$work/base
mkdir -p "$work"

# A layer over the base, so that the base stays as it is: layer FOLDER.
layer() {
    mkdir -p "$1"
    mount -t tmpfs tmpfs "$1"
    mkdir "$1/upper" "$1/work" "$1/root"
    mount -t overlay -o "lowerdir=$base,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
}

if [ -z "$release" ]; then

# --- two builds, and at the same time a Debian system ---

# All processes of a contained command end when this script does.
contained="setpriv --pdeathsig KILL unshare --kill-child --pid --fork --mount-proc"
$contained sh tests/packages/base.sh "$base" systemd-sysv iproute2 >"$work/base.log" 2>&1 &
system=$!
$contained make --no-print-directory deb BUILD="$work/again" >"$work/again.log" 2>&1 &
again=$!
$contained make --no-print-directory deb >"$work/deb.log" 2>&1 &
once=$!
started="$system $again $once"
wait $once || { cat "$work/deb.log" >&2; complain "make deb fails"; }
wait $again || { cat "$work/again.log" >&2; complain "make deb fails"; }
wait $system || { tail -20 "$work/base.log" >&2; complain "debootstrap fails"; }
started=
[ $bad = 0 ] || exit 1
debs=build/deb
for package in "$debs"/*.deb; do
    cmp "$package" "$work/again/deb/${package##*/}" || complain "two builds give different packages"
done
rm -rf "$work/programs"
for package in "$debs"/redlockd_*.deb "$debs"/redlock_*.deb; do dpkg-deb -x "$package" "$work/programs"; done
for program in usr/sbin/redlockd usr/bin/redlock; do
    readelf -hldW "$work/programs/$program" | tr '\n' ' ' | grep 'DYN.*RELRO.*BIND_NOW' >/dev/null ||
        complain "$program has no full RELRO, or is not position-independent"
    nm -D "$work/programs/$program" | grep -q '_chk@' || complain "$program is built without _FORTIFY_SOURCE"
done

else

# --- another Debian release, and a build in it ---

if ! RELEASE=$release sh tests/packages/base.sh "$base" systemd-sysv iproute2 >"$work/base.log" 2>&1; then
    ! grep 'Failed getting release file' "$work/base.log" >/dev/null ||
        { echo "packages: skipped: the mirror has no Debian $release"; exit 0; }
    tail -20 "$work/base.log" >&2
    complain "debootstrap fails"
    exit 1
fi
make --no-print-directory dist BUILD="$work/dist" >"$work/dist.log" 2>&1 || { cat "$work/dist.log" >&2; exit 1; }
debs=$work/debs
rm -rf "$debs"
mkdir "$debs"
layer "$work/builder"
mkdir "$work/builder/root/src"
tar -xzf "$work"/dist/redlockd-*.tar.gz -C "$work/builder/root/src" --strip-components=1
mount -t proc proc "$work/builder/root/proc"
chroot "$work/builder/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -c '
    apt-get -y --no-install-recommends install build-essential && cd /src &&
    apt-get -y --no-install-recommends build-dep . && dpkg-buildpackage --build=binary --no-sign -j2' \
    >"$work/deb.log" 2>&1 || { tail -40 "$work/deb.log" >&2; complain "the build in $release fails"; exit 1; }
cp "$work/builder/root"/*.deb "$debs"
umount -R "$work/builder"

fi

# --- what the container finds in /packages ---

layer "$work/programs"
root=$work/programs/root
mkdir -p "$root/packages/new" "$root/packages/old"
for package in "$debs"/*.deb; do
    case $package in *-dbgsym_*) continue ;; esac
    cp "$package" "$root/packages/new"
    dpkg-deb -R "$package" "$work/programs/old"
    sed -i 's/^Version: .*/Version: 0.0.1/; s/(= [0-9.]*)/(= 0.0.1)/' "$work/programs/old/DEBIAN/control"
    dpkg-deb --root-owner-group -Znone -b "$work/programs/old" "$root/packages/old" >/dev/null
    rm -r "$work/programs/old"
done
cp tests/packages/steps.sh docs/packages.md "$root/packages"
# The container has no network. apt fetches what the packages depend on now.
chroot "$root" sh -c 'apt-get -y --no-install-recommends --download-only install redis-server /packages/new/*.deb' \
    >"$work/fetch.log" 2>&1 || { cat "$work/fetch.log" >&2; complain "apt cannot fetch the dependencies"; exit 1; }

# --- systemd in a control group and namespaces of its own ---

make_group "$work/cgroup"
setpriv --pdeathsig KILL sh -c 'echo $$ >"$1/cgroup.procs"
    exec unshare --kill-child --pid --fork --mount --uts --ipc --net --cgroup sh tests/packages/boot.sh "$2"' \
    sh "$group" "$root" >"$work/console.log" 2>&1 </dev/null &
started=$!
tries=600
until first=$(pgrep -P $started) && nsenter -t "$first" -a systemctl is-system-running >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || { tail "$work/console.log" >&2; complain "systemd does not start"; exit 1; }
    sleep 0.1
done
nsenter -t "$first" -a env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh /packages/steps.sh ||
    complain "the steps above fail"

# --- the image ---

[ -n "$release" ] ||
    python3 tests/packages/container.py "$base" "$(ls "$work"/again/redlockd-*.tar.gz)" "$work/image" ||
    complain "the image fails"

[ $bad -eq 0 ] && echo "packages: all is well${release:+ in $release}"
exit $bad
