#!/bin/sh
# Downloads Valkey 9 or Redis 8, which Debian 12 lacks, from a later Debian into a folder. The server
# runs with the libraries of that Debian. Nothing is installed.
#
#     sh tests/servers.sh valkey|redis8 FOLDER     then: FOLDER/redis-server
set -eu

case $1 in
    valkey) suites=forky package=valkey-tools name=valkey version='Valkey server v=9\.' ;;
    redis8) suites='forky experimental' package=redis-tools/experimental name=redis version='Redis server v=8\.' ;;
    *) echo "usage: sh tests/servers.sh valkey|redis8 FOLDER" >&2; exit 2 ;;
esac
rm -rf "$2"
mkdir -p "$2/state/lists/partial" "$2/cache/archives/partial" "$2/debs" "$2/root"
folder=$(cd "$2" && pwd)
libraries="libc6 libatomic1 libgcc-s1 libstdc++6 libjemalloc2 liblzf1 libssl3t64 libzstd1 zlib1g libsystemd0 libcap2"

# A private apt configuration, which neither uses nor changes the lists, pins and hooks of this machine.
# It keeps the settings for downloads, such as a proxy.
for suite in $suites; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main"
done >"$folder/sources.list"
: >"$folder/status"
apt-config dump | grep '^Acquire::' >"$folder/apt.conf" || :
cat >>"$folder/apt.conf" <<END
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "$folder/state";
Dir::State::status "$folder/status";
Dir::Cache "$folder/cache";
APT::Sandbox::User "$(id -un)";
END
export APT_CONFIG="$folder/apt.conf"
# shellcheck disable=SC2086
if ! (apt-get -q update && cd "$folder/debs" && apt-get -q download $libraries $package) >"$folder/log" 2>&1; then
    cat "$folder/log" >&2
    exit 1
fi
for package in "$folder"/debs/*.deb; do
    dpkg-deb -x "$package" "$folder/root"
done

# The tools package has one program for all tools. Under the name of the server, it acts as the server.
server=$folder/root/usr/bin/$name-server
own=$(dirname "$(ls "$folder"/root/usr/lib/*/libc.so.6)")
ln -sf "$name-check-rdb" "$server"
cat >"$folder/starter" <<END
#!/bin/sh
exec $(ls "$own"/ld-linux*.so.*) --library-path $own $server "\$@"
END
chmod +x "$folder/starter"
"$folder/starter" --version
"$folder/starter" --version | grep -q "^$version"
# Created last: if this file exists, the folder is complete.
mv "$folder/starter" "$folder/redis-server"
