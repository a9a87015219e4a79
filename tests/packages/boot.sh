#!/bin/sh
# Runs systemd as process 1 on the file system ROOT: boot.sh ROOT [NAME ADDRESS], in new namespaces (pid,
# mount, uts, ipc, net, cgroup). With NAME and ADDRESS, they are those of the host, whose eth0 the caller
# adds. Without them, the container has only a loopback network, with the addresses of the masters in
# README.md.
set -eu
root=$1
name=${2:-container}
address=${3:-}
mount -t proc proc "$root/proc"
# systemd must not change settings of the kernel, which the host shares.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
hostname "$name"
ip link set lo up
if [ -n "$address" ]; then
    until ip link set eth0 up 2>/dev/null; do sleep 0.1; done
    ip address add "$address" dev eth0
else
    for last in 1 2 3; do ip address add "10.0.0.$last/32" dev lo; done
fi
cd "$root"
pivot_root . mnt
umount -l /mnt
# As on a machine of its own. Without it, LoadCredential= of systemd 252 gives services an empty folder.
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --bounding-set=-sys_module,-sys_time,-syslog,-sys_rawio --inh-caps=-all \
    /lib/systemd/systemd --unit=multi-user.target
