# For tests/deploy.sh and tests/packages.sh, which source this file after they have set $name: runs them in
# a mount namespace of their own, and ends what they have started. They set $started to the processes that
# all other processes of the test end with, and call make_group before it.
[ "$(id -u)" = 0 ] || { echo "$name: skipped: needs root"; exit 0; }
if [ "${IN_NAMESPACE:-}" != yes ]; then
    unshare --mount --pid --fork --cgroup --uts --ipc --net true 2>/dev/null ||
        { echo "$name: skipped: this root may not make namespaces"; exit 0; }
    export IN_NAMESPACE=yes
    exec unshare --mount sh "$0" "$@"
fi
unset MAKEFLAGS MFLAGS MAKEOVERRIDES BUILD
# A root shell of plain `su` does not find debootstrap.
PATH=$PATH:/usr/sbin:/sbin

# make_group FOLDER: mounts the control groups there, and makes $group for the test.
group=
make_group() {
    mkdir -p "$1"
    mount -t cgroup2 cgroup2 "$1" || { echo "$name: this machine has no cgroup2" >&2; exit 1; }
    group=$1/redlockd-$name-$$
    mkdir "$group"
}

started=
clean_up() {
    # shellcheck disable=SC2086
    [ -z "$started" ] || kill -9 $started 2>/dev/null
    wait
    # The processes in the group end a moment after their process 1.
    tries=50
    while [ -n "$group" ] && [ -d "$group" ] && [ $tries -gt 0 ]; do
        find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
        tries=$((tries - 1))
        sleep 0.1
    done
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
