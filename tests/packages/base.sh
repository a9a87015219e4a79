#!/bin/sh
# Makes the file system of a minimal Debian system: base.sh FOLDER PACKAGES. It has the mirror and the
# settings of this machine's apt, and its release unless $RELEASE names another one. If FOLDER is such a
# system and less than a day old, it stays as it is.
set -eu
folder=$1
shift
packages=$(echo "$*" | tr ' ' ,)
if [ "$(cat "$folder.made" 2>/dev/null)" = "$packages" ] && [ -n "$(find "$folder.made" -mtime -1)" ]; then
    exit 0
fi

host=$(. /etc/os-release && echo "$VERSION_CODENAME")
release=${RELEASE:-$host}
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(LABEL)' 'Created-By: Packages' |
    awk -v release="$host" '$2 == release && $3 == "Debian" { print $1; exit }')
[ -n "$mirror" ] || { echo "base: /etc/apt has no mirror of Debian $host" >&2; exit 1; }
rm -rf "$folder" "$folder.made"
debootstrap --variant=minbase --include="$packages" "$release" "$folder" "$mirror"
apt-config dump | grep -E '^Acquire::(Check-|http|Retries)' >"$folder/etc/apt/apt.conf.d/machine" || true
# Debian's image for containers leaves out the manual pages as well, but the tests look for them.
chroot "$folder" apt-get update
echo "$packages" >"$folder.made"
