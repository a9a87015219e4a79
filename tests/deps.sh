#!/bin/sh
# Install by apt the packages that redlockd needs and this machine lacks; nothing if none is missing.
# usage: tests/deps.sh [FURTHER PACKAGES]
set -eu

wanted="gcc libc6-dev libevent-dev libhiredis-dev libyaml-dev uthash-dev libxxhash-dev check
        redis-server clang libclang-rt-dev clang-format procps
        netcat-openbsd iproute2 spin tmux vim-tiny groff-base mandoc python3 nodejs
        valgrind pkg-config systemd libssl-dev openssl $*"

missing=
for package in $wanted; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

sudo=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "deps: run as root: apt-get install$missing" >&2; exit 1; }
    sudo=sudo
fi

echo "deps: installing$missing"
log=$(mktemp)
# RUNLEVEL=1 keeps Debian from starting a Redis service of its own: only the program is wanted.
if ! { $sudo apt-get update &&
       $sudo env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
           apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "deps: apt could not install$missing" >&2
    exit 1
fi
rm -f "$log"
