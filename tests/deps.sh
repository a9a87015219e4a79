#!/bin/sh
# Installs the missing packages of one set with apt: demo (build and run), deb (make deb), check (make
# check) and audit (make audit). Each set includes demo, and audit includes all sets.
#
#     tests/deps.sh demo|deb|check|audit [FURTHER PACKAGES]
set -eu

demo="gcc libc6-dev libevent-dev libhiredis-dev libyaml-dev libxxhash-dev libssl-dev
      redis-server procps"
check="check clang-format groff-base iproute2 mandoc netcat-openbsd nodejs openssl pkg-config python3 python3-redis
       redis-tools tmux vim-tiny"
deb="build-essential debhelper dpkg-dev lintian"
audit="clang curl debootstrap libclang-rt-dev mypy python3-pip python3-setuptools python3-wheel python3-yaml spin
       systemd valgrind"

set_name=$1
shift
case $set_name in
    demo) wanted="$demo $*" ;;
    check) wanted="$demo $check $*" ;;
    deb) wanted="$demo $deb $*" ;;
    audit) wanted="$demo $deb $check $audit $*" ;;
    *) echo "usage: sh tests/deps.sh demo|deb|check|audit [FURTHER PACKAGES]" >&2; exit 2 ;;
esac

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

# `apt-get update` does not wait for a lock that another apt holds, such as the one that systemd starts
# after boot.
update() {
    tries=60
    until $sudo env LC_ALL=C apt-get update >"$log" 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] && grep -q 'Could not get lock' "$log" || return 1
        sleep 5
    done
}

echo "deps: installing$missing"
log=$(mktemp)
if ! { update &&
       $sudo env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
           apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing >>"$log" 2>&1; }; then
    cat "$log" >&2
    echo "deps: apt could not install$missing" >&2
    exit 1
fi
rm -f "$log"

# Debian starts the services of these packages, but the tests need only the programs. RUNLEVEL=1 prevents
# that only where systemd does not run. A service that was there before stays as it is.
for each in redis-server/redis-server etcd-server/etcd; do
    case "$missing " in *" ${each%/*} "*) ;; *) continue ;; esac
    [ ! -d /run/systemd/system ] || $sudo systemctl disable --now --quiet "${each#*/}.service"
done
