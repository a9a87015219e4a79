#!/bin/sh
# The unit files: what the sandbox leaves open, and what systemd has to say of them. Takes
# systemd-analyze, which needs no systemd that runs.
set -u
bad=0
complain() { echo "units: $*" >&2; bad=1; }

# A wrong configuration (78) or command line (2) does not change by itself.
grep -qx 'RestartPreventExitStatus=2 78' packaging/redlockd.service ||
    complain "redlockd.service starts the daemon again although its configuration is wrong"

# At most so much exposure, in tenths; see systemd-analyze(1).
EXPOSURE=15

if ! command -v systemd-analyze >/dev/null; then
    echo "units: left out: the unit files, since there is no systemd-analyze"
    exit $bad
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
systemd-analyze security --no-pager --offline=true --threshold=$EXPOSURE \
    packaging/redlockd.service >"$work/security" 2>&1 || {
    grep -v '✓' "$work/security" >&2
    complain "the sandbox of redlockd.service leaves more open than $EXPOSURE tenths"
}
# A program that is there: what systemd says is about the units alone.
sed 's|/usr/local/sbin/redlockd|/bin/true|' packaging/redlockd.service >"$work/redlockd.service"
cp packaging/redlockd.socket "$work"
SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$work"/redlockd.* >"$work/verify" 2>&1 ||
    complain "systemd does not take the units"
# Also what it only warns of: a key that it does not know.
! grep -F "$work" "$work/verify" >&2 || complain "systemd warns of the units as above"

[ $bad -eq 0 ] && echo "units: all is well"
exit $bad
