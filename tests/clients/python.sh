#!/bin/sh
# Runs the tests of client/python with daemons from the folder $BUILD, which defaults to build. $PYTHON
# names the interpreter.
set -u
cd "$(dirname "$0")/../.." || exit 1
exec "${PYTHON:-/usr/bin/python3}" client/python/tests/run.py "$@"
