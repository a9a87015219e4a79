#!/bin/sh
# Fetch the servers that Debian 12 has not from later Debians, into a folder: Valkey 9 and Redis 8. They
# run with the libraries of their own Debian, and nothing is installed.
#
#     sh tests/servers.sh <folder>     then: <folder>/valkey/redis-server, <folder>/redis8/redis-server
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
mirror=http://deb.debian.org/debian
libraries="libc6 libatomic1 libgcc-s1 libstdc++6 libjemalloc2 liblzf1 libssl3t64 libzstd1 zlib1g libsystemd0 libcap2"

mkdir -p "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial" "$folder/debs" "$folder/root"
: >"$folder/apt/status"
for suite in forky experimental; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done >"$folder/apt/sources.list"

# A system of its own: nothing of this one's is read or changed.
own_apt() {
    apt-get -q -o Dir::State="$folder/apt/state" -o Dir::State::status="$folder/apt/status" \
        -o Dir::Cache="$folder/apt/cache" -o Dir::Etc::sourcelist="$folder/apt/sources.list" \
        -o Dir::Etc::sourceparts=- -o APT::Sandbox::User="$(id -un)" "$@"
}

{
    own_apt update
    # shellcheck disable=SC2086
    (cd "$folder/debs" && own_apt download $libraries valkey-tools redis-tools/experimental)
} >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
for package in "$folder"/debs/*.deb; do
    dpkg-deb -x "$package" "$folder/root"
done

# Debian's package of each has one program for all of its tools: by the name it is called, it is a server.
programs=$folder/root/usr/bin
own=$(dirname "$(ls "$folder"/root/usr/lib/*/libc.so.6)")
for place in valkey:valkey redis8:redis; do
    server=${place#*:}-server
    starter=$folder/${place%:*}/redis-server
    ln -sf "${place#*:}-check-rdb" "$programs/$server"
    mkdir -p "$(dirname "$starter")"
    printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' \
        "$(ls "$own"/ld-linux*.so.*)" "$own" "$programs/$server" >"$starter"
    chmod +x "$starter"
    "$starter" --version
done
