#!/bin/sh
# Writes the source tarball: dist.sh redlockd-VERSION FILE.tar.gz. The same sources give the same bytes,
# in a clone and in an unpacked tarball. All files get the time SOURCE_DATE_EPOCH; its default is the
# time of the last commit.
set -eu
name=$1
tarball=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# An unpacked tarball has no git. There MANIFEST lists the files, and has their time.
if [ -e .git ]; then
    git ls-files >"$work/files"
    LC_ALL=C sort "$work/files" >"$work/MANIFEST"
    epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
elif [ -e MANIFEST ]; then
    cp MANIFEST "$work"
    epoch=${SOURCE_DATE_EPOCH:-$(stat -c %Y MANIFEST)}
else
    echo "dist: this folder is neither a clone nor an unpacked source tarball: it has no .git and no MANIFEST" >&2
    exit 1
fi
mkdir -p "$(dirname "$tarball")"
tar --create --format=ustar --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$epoch" \
    --transform="s|^|$name/|" --file="$work/tar" --files-from="$work/MANIFEST" -C "$work" MANIFEST
gzip -9 -n <"$work/tar" >"$tarball"
echo "dist: $tarball"
