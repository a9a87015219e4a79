#!/bin/sh
# The work of a guest under its lock: work.sh FENCE.
set -eu
case $WORK in
    until-finish)
        echo "working $1"
        until [ -e "$FOLDER/finish" ]; do sleep 0.01; done ;;
    alone)
        set -C # the next line fails if another client is inside
        : >"$FOLDER/inside"
        set +C
        echo "$1" >>"$FOLDER/fences"
        sleep 0.01
        rm "$FOLDER/inside" ;;
esac
echo done
