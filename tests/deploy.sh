#!/bin/sh
# Follows docs/deploy.md (`make deploy-test`): runs all its blocks in their order, on five Debian systems
# with systemd in namespaces (tests/packages/deploy.py).
set -u
[ "$(id -u)" = 0 ] || { echo "deploy: skipped: needs root"; exit 0; }
if [ "${IN_NAMESPACE:-}" != yes ]; then
    unshare --mount --pid --fork --cgroup --uts --ipc --net true 2>/dev/null ||
        { echo "deploy: skipped: this root may not make namespaces"; exit 0; }
    export IN_NAMESPACE=yes
    exec unshare --mount sh "$0"
fi
unset MAKEFLAGS MFLAGS MAKEOVERRIDES BUILD
sh tests/deps.sh deb curl debootstrap iproute2 python3 || exit 1

work=$PWD/build/packages
base=$work/base
group=
hosts=
clean_up() {
    [ -z "$hosts" ] || kill -9 "$hosts" 2>/dev/null
    wait
    # The processes of the hosts end a moment after their process 1.
    tries=50
    while [ -n "$group" ] && [ -d "$group" ] && [ $tries -gt 0 ]; do
        find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
        tries=$((tries - 1))
        sleep 0.1
    done
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$work/cgroup" "$work/deploy"
sh tests/packages/base.sh "$base" systemd-sysv >"$work/base.log" 2>&1 ||
    { tail -n 20 "$work/base.log" >&2; echo "deploy: debootstrap fails" >&2; exit 1; }
mount -t cgroup2 cgroup2 "$work/cgroup" || { echo "deploy: this machine has no cgroup2" >&2; exit 1; }
group=$work/cgroup/redlockd-deploy-$$
mkdir "$group"
setpriv --pdeathsig KILL unshare --kill-child --pid --fork --mount-proc \
    python3 tests/packages/deploy.py "$base" "$work/deploy" "$group" &
hosts=$!
wait $hosts
status=$?
hosts=
exit $status
