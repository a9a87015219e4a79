#!/bin/bash
# Checks the models in docs/design/model with spin. A run of a complete model must be exhaustive and find no
# error. A run without one of its rules must find the failure that the rule prevents. A run that ends
# in SEEN shows that the model reaches an interesting state. Prints one line per run and the totals.
#
#     bash tests/model.sh [NAME...]    all runs, or only these
#
# The results are in build/model/NAME: pan.log, and story.txt, the error trace in words. MODEL_MEMORY and
# MODEL_SECONDS limit each run, in MiB and seconds.
set -u
cd "$(dirname "$0")/.." || exit 1

memory=${MODEL_MEMORY:-6000} limit=${MODEL_SECONDS:-1800}
out=${BUILD:-build}/model
passed=0 failed=0 only=" $* "
TIMEFORMAT=%U

command -v spin >/dev/null || { echo "model: spin is missing: sh tests/deps.sh audit" >&2; exit 1; }

# Generates, compiles and runs the verifier of a model. The seconds are processor time.
verify() { # dir model how definitions...
    local dir=$1 model=$PWD/docs/design/model/$2.pml how=$3
    shift 3
    rm -rf "$dir" && mkdir -p "$dir" || return 1
    (cd "$dir" && spin "$@" -a "$model" >spin.log 2>&1 &&
        # Every step accesses shared state, so partial order reduction would save nothing.
        "${CC:-gcc}" -O2 -w -DSAFETY -DNOREDUCE -DMEMLIM="$memory" "$how" -o pan pan.c >cc.log 2>&1) ||
        return 1
    # -E: no check for deadlocks, since a run may end with processes that wait. For example, a run of guard.pml
    # ends as soon as no two daemons can hold the lock any more.
    { time (cd "$dir" && nice -n 10 timeout "$limit" ./pan -E -m100000 </dev/null >pan.log 2>&1; :); } \
        2>"$dir/seconds"
}

# True if the run was complete, found no error and reached every statement of the model.
is_exhaustive() { # dir
    grep -q 'errors: 0$' "$1/pan.log" &&
        grep -q '^pan: elapsed time' "$1/pan.log" &&
        ! grep -qiE 'max search depth too small|memory bound|reached -DMEMLIM|out of memory|Search not completed|aborted' \
            "$1/pan.log" &&
        ! grep -E 'state [0-9]+, "' "$1/pan.log" | grep -qv '"-end-"'
}

# True if an error was found and its trace ends with the expected words.
is_found() { # dir model words definitions...
    local dir=$1 model=$2 words=$3
    shift 3
    grep -q 'errors: 1$' "$dir/pan.log" || return 1
    (cd "$dir" && spin -T "$@" -k "$model.pml.trail" "$OLDPWD/docs/design/model/$model.pml" 2>&1 |
        sed '/^spin: /,$d' >story.txt)
    [ "$(tail -n 1 "$dir/story.txt")" = "$words" ]
}

run() { # name expected model definitions...
    local name=$1 expected=$2 model=$3 how=-DCOLLAPSE result=FAILED dir=$out/$1
    shift 3
    [ "$only" = '  ' ] || [[ $only == *" $name "* ]] || return 0
    # Breadth-first search finds the shortest trace of an error.
    [ "$expected" = nothing ] || how=-DBFS
    if verify "$dir" "$model" "$how" "$@"; then
        if [ "$expected" = nothing ]; then
            is_exhaustive "$dir" && result=nothing
        else
            is_found "$dir" "$model" "$expected" "$@" && result=found
        fi
    fi
    printf '%-17s %-27s %-8s %9s states %5s s\n' "$name" "$expected" "$result" \
        "$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/pan.log" 2>/dev/null | head -n 1)" \
        "$(tail -n 1 "$dir/seconds" 2>/dev/null | sed 's/[.].*//')"
    if [ "$result" = FAILED ]; then
        failed=$((failed + 1))
        tail -n 30 "$dir"/{spin,cc,pan}.log 2>/dev/null
    else
        passed=$((passed + 1))
    fi
}

back='BACK AFTER ITS RELEASE' gone='GONE WHILE IT IS HELD'
two='TWO HOLDERS' freed='TAKEN FROM A HOLDER' left='LEFT BEHIND' falls='A FENCE THAT DOES NOT RISE'
flush='-DNO_RESTART -DNO_STEP' restart='-DNO_FLUSH -DNO_STEP' step='-DNO_FLUSH -DNO_RESTART'
healthy='-DNO_FORGET -DNO_SNAPSHOT' one='-DROUNDS_0=0'

# shellcheck disable=SC2086
{
    run flush            nothing  guard $flush
    run restart          nothing  guard $restart
    run step             nothing  guard $step
    run all-on-one       nothing  guard -DPROMPT
    run flush-and-small  nothing  guard -DPROMPT -DSTEPS=1 -DNO_RESTART -DNO_LARGE_STEP
    run restart-and-step nothing  guard -DPROMPT -DSTEPS=1 -DNO_FLUSH
    run no-guard         "$two"   guard $restart -DNO_GUARD
    run probe-ahead      "$two"   guard $flush -DPROBE_AHEAD
    run no-epoch         "$two"   guard $flush -DNO_EPOCH
    run no-quarantine    "$two"   guard $restart -DNO_QUARANTINE
    run no-monitor       "$two"   guard $step -DNO_CLOCK_MONITOR
    run no-drift         "$two"   guard $step -DNO_DRIFT
    run no-elapsed       "$two"   guard $step -DNO_ELAPSED
    run see-return       SEEN     guard $restart -DSEE_RETURN
    run see-step-return  SEEN     guard $step -DSEE_STEP_RETURN
    run see-rival        SEEN     guard $restart -DSEE_RIVAL

    run undo             nothing  undo
    run reuse-token      "$two"   undo -DREUSE_TOKEN -DHOLDERS_ONLY
    run pend-undecided   "$freed" undo -DPENDING_UNDECIDED
    run no-kill          "$left"  undo -DNO_KILL
    run no-undo          "$left"  undo -DNO_UNDO
    run undo-elsewhere   "$left"  undo -DUNDO_ELSEWHERE
    run see-pending      SEEN     undo -DHOLDERS_ONLY -DSEE_DEFERRED

    run fence            nothing  fence
    run fence-ends       nothing  fence -DFENCE_ENDS
    run no-compare       "$falls" fence -DNO_COMPARE
    run fence-forgotten  "$falls" fence -DNO_QUARANTINE
    run wide-clocks      "$falls" fence -DWIDE_CLOCKS
    run wide-ends        "$falls" fence -DWIDE_CLOCKS -DFENCE_ENDS
    run see-bid-again    SEEN     fence -DSEE_BID_AGAIN

    run extend           nothing  extend $healthy -DROUNDS_0=1 -DROUNDS_1=1
    run extend-short     nothing  extend $healthy $one -DNO_RELEASE
    run extend-thrice    nothing  extend $healthy $one -DROUNDS_1=3 -DNO_SHORT -DNO_RIVAL
    run extend-forget    nothing  extend $one -DNO_SNAPSHOT -DNO_SHORT
    run extend-snapshot  nothing  extend $one -DNO_FORGET -DNO_SHORT
    run shortens         "$two"   extend $healthy $one -DNO_RELEASE -DSHORTENS
    run count-unguarded  "$back"  extend $one -DNO_FORGET -DNO_SHORT -DNO_RIVAL -DCOUNT_UNGUARDED
    run deny-unguarded   "$gone"  extend $one -DNO_SNAPSHOT -DDENY_UNGUARDED
    run backfill-first      "$back"  extend $healthy $one -DROUNDS_1=3 -DNO_SHORT -DNO_RIVAL -DBACKFILL_FIRST
    run backfill-released   "$left"  extend $healthy -DNO_SHORT -DBACKFILL_RELEASED
    run pend-granted     "$two"   extend $healthy $one -DNO_SHORT -DNO_RELEASE -DPENDING_GRANTED
    run crossed          "$back"  extend $healthy $one -DROUNDS_1=3 -DNO_SHORT -DNO_RIVAL -DMAY_CROSS
    run carried          "$back"  extend $one -DROUNDS_1=3 -DNO_FORGET -DNO_SHORT -DNO_RIVAL
    run see-backfilled      SEEN     extend $healthy $one -DNO_SHORT -DSEE_BACKFILLED

    run swap             nothing  swap
    run no-token-compare "$two"   swap -DNO_COMPARE
    run swap-unguarded   "$two"   swap -DUNGUARDED
    run swap-token-again "$two"   swap -DREUSE_TOKEN
    run keep-next        "$left"  swap -DKEEP_NEXT
    run keep-old         "$left"  swap -DKEEP_OLD
    run see-handed-over  SEEN     swap -DSEE_HANDED_OVER
    run see-swap-rival   SEEN     swap -DSEE_RIVAL

    run attest           nothing  attest
    run count-untrusted  "$two"   attest -DCOUNT_UNTRUSTED
    run early-sample     "$two"   attest -DEARLY_SAMPLE
    run any-attests      "$two"   attest -DANY_ATTESTS
    run fresh-floor      "$two"   attest -DFRESH_FLOOR
    run raise-floor      "$two"   attest -DRAISE_FLOOR
    run see-inherited    SEEN     attest -DSEE_ATTESTED
    run see-chain        SEEN     attest -DSEE_CHAIN
}

echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
