#!/bin/sh
# Follows docs/deploy.md (`make deploy-test`): runs all its blocks in their order, on five Debian systems
# with systemd in namespaces (tests/packages/deploy.py).
set -u
name=deploy
. tests/packages/namespace.sh
sh tests/deps.sh deb curl debootstrap iproute2 python3 || exit 1

work=$PWD/build/packages
base=$work/base
mkdir -p "$work/deploy"
sh tests/packages/base.sh "$base" systemd-sysv iproute2 >"$work/base.log" 2>&1 ||
    { tail -n 20 "$work/base.log" >&2; echo "deploy: debootstrap fails" >&2; exit 1; }
make_group "$work/cgroup"
setpriv --pdeathsig KILL unshare --kill-child --pid --fork --mount-proc \
    python3 tests/packages/deploy.py "$base" "$work/deploy" "$group" &
started=$!
wait $started
status=$?
started=
exit $status
