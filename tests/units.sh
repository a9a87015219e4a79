#!/bin/sh
# Checks the unit files with systemd-analyze, which works without a running systemd: how exposed the
# service is, and whether systemd warns about the files.
set -u
bad=0
complain() { echo "units: $*" >&2; bad=1; }

# A restart does not repair an invalid configuration (78) or command line (2).
grep -qx 'RestartPreventExitStatus=2 78' packaging/redlockd.service ||
    complain "redlockd.service restarts the daemon although its configuration is invalid"

# The highest allowed exposure level, in tenths: systemd-analyze(1), "security".
EXPOSURE=15

if ! command -v systemd-analyze >/dev/null; then
    echo "units: skipped: systemd-analyze is not installed"
    exit $bad
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
systemd-analyze security --no-pager --offline=true --threshold=$EXPOSURE \
    packaging/redlockd.service >"$work/security" 2>&1 || {
    grep -v '✓' "$work/security" >&2
    complain "the exposure of redlockd.service is above $EXPOSURE tenths"
}
# systemd would report a missing program. /bin/true exists everywhere, so only problems of the units
# are reported.
sed 's|/usr/local/sbin/redlockd|/bin/true|' packaging/redlockd.service >"$work/redlockd.service"
cp packaging/redlockd.socket "$work"
SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$work"/redlockd.* >"$work/verify" 2>&1 ||
    complain "systemd rejects the units"
# Warnings, such as unknown keys, fail as well.
! grep -F "$work" "$work/verify" >&2 || complain "systemd has the warnings above for the units"

[ $bad -eq 0 ] && echo "units: all is well"
exit $bad
