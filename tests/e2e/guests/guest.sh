#!/bin/sh
# Runs the example of a page for one language, with the port of a test's daemon and with another time
# to wait. The work of the example, deploy, is work.sh beside this file.
#
#     guest.sh PAGE LANGUAGE FOLDER PORT WAIT_S until-finish|alone
set -eu
language=$2 port=$4 wait_s=$5
root=$PWD build=$(realpath "${BUILD:-build}")
page=$root/$1
export FOLDER="$3" WORK="$6" DEPLOY="$root/tests/e2e/guests/work.sh"
cd "$(mktemp -d "$FOLDER/guest.XXXXXX")"

# The first block below the heading of the language.
example() {
    awk -v heading="### $language" '
        $0 == heading { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside' "$page" | sed "s/60/$wait_s/; s/7335/$port/"
}

case $language in
    Python | "Any Redis client")
        { cat <<'END'; example; } >guest.py
import os, subprocess, sys
sys.dont_write_bytecode = True
def deploy(fence="-", **_):
    subprocess.check_call(["sh", os.environ["DEPLOY"], str(fence)])
steps = [deploy]
END
        PYTHONPATH=$root/client/python exec /usr/bin/python3 guest.py ;;
    Node)
        mkdir node_modules
        ln -s "$root/client/node" node_modules/redlockd
        { example; cat <<'END'; } >guest.mjs
import { spawn } from 'node:child_process';
function deploy(fence) {
  const number = typeof fence === 'number' ? String(fence) : '-';
  const work = spawn('sh', [process.env.DEPLOY, number], { stdio: 'inherit' });
  return new Promise((resolve) => work.on('exit', resolve));
}
END
        exec node guest.mjs ;;
    Go)
        cat >go.mod <<END
module guest
go 1.19
require redlockd.dev/client/go v0.2.0
replace redlockd.dev/client/go => $root/client/go
END
        { cat <<END; example; echo '}'; } >guest.go
package main
import ("context"; "errors"; "fmt"; "os"; "os/exec"; "time"; redlockd "redlockd.dev/client/go")
// For an example that does not make its own.
var client, _ = redlockd.New(redlockd.Config{Addresses: []string{"tcp://127.0.0.1:$port"}})
func main() {
	if err := run(context.Background()); errors.Is(err, redlockd.ErrNotAcquired) {
		fmt.Println("another client holds the lock")
	} else if err != nil {
		fmt.Println(err)
	}
}
func deploy(_ context.Context, fence ...int64) error {
	number := "-"
	if len(fence) > 0 {
		number = fmt.Sprint(fence[0])
	}
	work := exec.Command("sh", os.Getenv("DEPLOY"), number)
	work.Stdout, work.Stderr = os.Stdout, os.Stderr
	return work.Run()
}
func run(ctx context.Context) error {
END
        export GOFLAGS=-mod=mod GOCACHE="$build/clients/go"
        go build -o guest guest.go
        exec ./guest ;;
    C)
        { cat <<'END'; example; echo '}'; } >guest.c
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <redlock.h>
static void deploy(int64_t fence, int64_t left_ms)
{
    char command[64];
    snprintf(command, sizeof(command), "sh \"$DEPLOY\" %" PRId64, left_ms > 0 ? fence : -1);
    if (system(command) != 0)
        abort();
}
int main(void)
{
END
        ${CC:-cc} -Wall -Werror -I"$root/client/c" -o guest guest.c "$build/libredlock.a"
        exec ./guest ;;
    Shell)
        printf '#!/bin/sh\nexec sh "$DEPLOY" "$REDLOCK_FENCE"\n' >deploy
        chmod +x deploy
        example >guest.sh
        PATH=$build:$PATH REDLOCK_URL=tcp://127.0.0.1:$port exec sh guest.sh ;;
esac
