#!/bin/sh
# What an administrator does with the packages, under systemd in the container of tests/packages.sh:
# install, configure, start, reload, restart, upgrade, remove, reinstall and purge. The packages are in
# /packages/new, and in /packages/old with a lower version. docs/packages.md has the commands.
set -u
bad=0
complain() { echo "packages: $*" >&2; bad=1; }
quiet() { "$@" >/tmp/log 2>&1 || { cat /tmp/log >&2; complain "$* fails"; }; }
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
apt_get() {
    quiet apt-get -y --no-install-recommends -o DPkg::Use-Pty=0 "$@"
}
active() { systemctl is-active --quiet "$1"; }
enabled() { systemctl is-enabled --quiet "$1" 2>/dev/null; }
version() { redlockd -V | grep -o '[0-9][0-9.]*' | head -1; }
main_pid() { systemctl show -p MainPID --value redlockd.service; }
socket_start() { systemctl show -p ActiveEnterTimestampMonotonic --value redlockd.socket; }
# documented N: the commands of the Nth block of the section "Install with apt".
documented() {
    sed -n '/^## Install with apt/,/^## [^I]/p' /packages/packages.md |
        awk -v wanted="$1" '/^```/ { fence++; next } fence == 2 * wanted - 1'
}
# until_true SECONDS COMMAND...
until_true() {
    tries=$(($1 * 10))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.1
    done
}

# interrupt NAME COMMAND...: runs the command while one client holds a lock, 100 clients wait for it and
# others connect all the time. No connection may be refused, and all 100 have to be served. A connection
# that the old daemon has accepted may end before the answer.
interrupt() {
    what=$1
    shift
    rm -rf /tmp/clients
    mkdir /tmp/clients
    socket=$(socket_start)
    pid=$(main_pid)
    redlock run busy -- sh -c 'until [ -e /tmp/clients/go ]; do sleep 0.1; done' 2>/tmp/clients/holder.err &
    holder=$!
    until_true 60 redlock_held busy || complain "$what: the holder gets no lock"
    waiting=
    for client in $(seq 100); do
        redlock run --wait 2m busy -- touch "/tmp/clients/served.$client" 2>"/tmp/clients/err.$client" &
        waiting="$waiting $!"
    done
    until_true 120 hundred_wait || complain "$what: fewer than 100 clients wait"
    (   until [ -e /tmp/clients/done ]; do
            redlock ping >/tmp/clients/ping 2>&1 || grep 'cannot connect' /tmp/clients/ping >>/tmp/clients/refused
            echo >>/tmp/clients/pings
        done ) &
    pinging=$!
    until_true 60 [ -e /tmp/clients/pings ]
    quiet "$@"
    until_true 60 redlock ping >/dev/null 2>&1 || complain "$what: the daemon does not answer"
    touch /tmp/clients/done
    wait $pinging
    [ "$(main_pid)" != "$pid" ] || complain "$what: the daemon was not restarted"
    [ "$(socket_start)" = "$socket" ] || complain "$what: the socket was closed"
    [ ! -s /tmp/clients/refused ] || { head -3 /tmp/clients/refused >&2; complain "$what: a client was refused"; }
    ! grep -li refused /tmp/clients/*err* || complain "$what: a client was refused"
    touch /tmp/clients/go
    wait $holder || complain "$what: the holder fails: $(cat /tmp/clients/holder.err)"
    failed=0
    for client in $waiting; do wait "$client" || failed=$((failed + 1)); done
    [ $failed = 0 ] || { cat /tmp/clients/err.* | sort | uniq -c | head >&2; complain "$what: $failed clients fail"; }
    served=$(ls /tmp/clients | grep -c served)
    [ "$served" = 100 ] || complain "$what: $served of 100 clients are served"
    [ $bad = 1 ] || echo "packages: $what: 100 waiting clients served, $(wc -l </tmp/clients/pings) connections, none refused"
}
redlock_held() { redlock status "$1" 2>/dev/null | grep -qi held; }
hundred_wait() { redlock stats 2>/dev/null | grep -q ' waiting=100 '; }

cd /packages || exit 1
new=$(dpkg-deb -f new/redlockd_*.deb Version)

# --- installation ---

cd /packages/old || exit 1
apt_get install redis-server
systemctl disable --now --quiet redis-server.service
for last in 1 2 3; do
    quiet redis-server --bind "10.0.0.$last" --protected-mode no --save '' --daemonize yes
done
apt_get install ./redlockd_*.deb ./redlock_*.deb
for unit in redlockd.service redlockd.socket; do
    ! enabled $unit || complain "$unit is enabled before it is configured"
    ! active $unit || complain "$unit runs before it is configured"
done
[ -d /etc/redlockd ] || complain "there is no /etc/redlockd"
for page in man1/redlock.1 man5/redlockd.yaml.5 man7/redlock-protocol.7 man8/redlockd.8; do
    [ -e "/usr/share/man/$page.gz" ] || complain "there is no $page"
done

# --- the documented configuration and commands ---

documented 2 >/etc/redlockd/redlockd.yaml
# On a busy machine, a master can be too slow for the clock check.
tries=10
until redlockd -t --probe >/tmp/log 2>&1 || [ $tries = 0 ]; do
    tries=$((tries - 1))
    sleep 1
done
[ $tries != 0 ] || { cat /tmp/log >&2; complain "redlockd -t --probe fails"; }
documented 3 >/tmp/commands
quiet sh -e /tmp/commands
grep -qx locked /tmp/log || complain "the documented commands give no lock"
for unit in redlockd.service redlockd.socket; do
    enabled $unit || complain "$unit is not enabled"
    active $unit || complain "$unit does not run"
done
[ "$(stat -c %u "/proc/$(main_pid)")" != 0 ] || complain "the daemon runs as root"
quiet systemctl reload redlockd
until_true 60 sh -c 'journalctl -u redlockd | grep -q " reloaded "' || complain "the journal shows no reload"

interrupt restart systemctl restart redlockd.service

# --- upgrade, removal, reinstallation, purge ---

cd /packages/new || exit 1
upgrade() { apt_get install ./redlockd_*.deb ./redlock_*.deb; }
interrupt upgrade upgrade
[ "$(dpkg-query -W -f '${Version}' redlockd)" = "$new" ] || complain "version $new is not installed"

apt_get remove redlockd
! active redlockd.service && ! active redlockd.socket || complain "a unit runs after removal"
! redlock ping >/dev/null 2>&1 || complain "something answers after removal"
[ -e /etc/redlockd/redlockd.yaml ] || complain "removal deletes the configuration"

apt_get install ./redlockd_*.deb
active redlockd.service && active redlockd.socket || complain "the enabled service does not return when its package does"
quiet redlock run --wait 10s deploy -- true

touch /etc/redlockd/ci.secret
apt_get purge redlockd
[ ! -e /etc/redlockd ] || complain "purge leaves /etc/redlockd"
left=$(find /etc /lib/systemd /usr /var /run -xdev -name '*redlockd*' ! -path '/var/cache/apt/*' ! -path '/var/lib/dpkg/*-old')
[ -z "$left" ] || complain "purge leaves $left"

apt_get install ./*.deb
! active redlockd.socket && ! enabled redlockd.socket || complain "the socket is enabled after a purge"
ldconfig -p | grep -q libredlock.so.0 || complain "the linker does not find libredlock"
apt_get purge redlockd redlock libredlock0 libredlock-dev
! systemctl --failed --no-legend | grep . || complain "the units above failed"

[ $bad -eq 0 ] || journalctl -u redlockd.service -u redlockd.socket --no-pager | tail -40 >&2
exit $bad
