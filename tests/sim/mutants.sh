#!/bin/sh
# The simulator is tested, not trusted: with one rule taken out of the code it has to find a
# violation. Each mutant is one source, changed by sed, linked with the rest.
#     mutants.sh BUILD-FOLDER [NAME...]
set -u
build=$1
shift
only=" $* "
dir=$build/mutants
seeds=${SEEDS:-30000}
bad=0 found=0
mkdir -p "$dir"

# mutant NAME SOURCE SED-SCRIPT FAULTS WHAT-MUST-BE-FOUND
mutant() {
    name=$1 source=$2 script=$3 faults=$4 wanted=$5
    [ "$only" = "  " ] || case $only in *" $name "*) ;; *) return ;; esac
    sed -e "$script" "$source" >"$dir/$name.c"
    if cmp -s "$source" "$dir/$name.c"; then
        echo "$name: $source does not have what is to be taken out of it"
        bad=$((bad + 1))
        return
    fi
    if ! $CC $CPPFLAGS -std=c11 -O0 -w -c -o "$dir/$name.o" "$dir/$name.c"; then
        echo "$name: does not compile"
        bad=$((bad + 1))
        return
    fi
    rest=
    for object in $OBJECTS; do
        [ "$object" = "$build/${source%.c}.o" ] || rest="$rest $object"
    done
    $CC -o "$dir/$name" "$dir/$name.o" $rest $LIBS || exit 2
    FAULTS=$faults "$dir/$name" 1 "$seeds" >"$dir/$name.log" 2>&1
    if grep "^FAILED, .*$wanted" "$dir/$name.log" >"$dir/$name.found"; then
        found=$((found + 1))
        printf '%-28s %s\n' "$name" "$(sed 's/^FAILED, commit [^,]*, //; s/ until .*//' "$dir/$name.found")"
    else
        bad=$((bad + 1))
        printf '%-28s NOT FOUND\n' "$name"
        tail -n 3 "$dir/$name.log"
    fi
    rm -f "$dir/$name" "$dir/$name.o"
}

unfit="could vote and keep it\|two holders"

# --- the guard ---
mutant no-guard protocol/guard.c '
    /^enum reason guard_refuses_vote/,/^}/s/^{/{ return REASON_NONE;/
    /^uint32_t guard_epoch/,/^}/s/^{/{ return 0;/
    /^enum guard_verdict guard_on_sample/,/^}/s/return GUARD_[A-Z]*;/return GUARD_PASS;/' all "$unfit"
mutant no-quarantine protocol/guard.c \
    's/received_ns + left_ns;/received_ns;/' all "$unfit"
mutant no-watch protocol/watch.c \
    's/return WATCH_STEPPED;/return WATCH_STEADY;/' all "$unfit"
mutant no-probe-behind-votes server/engine_links.c '
    s/if (said.kind != ANSWER_FAILED && operation_is_vote(operation, command))/if (0)/' all "$unfit"
mutant no-epochs protocol/guard.c \
    '/^uint32_t guard_epoch/,/^}/s/^{/{ return 0;/' all "$unfit"
mutant always-settled protocol/guard.c \
    's/if (!node->settled)$/if (0)/' all "$unfit"
mutant no-replication-id protocol/guard.c \
    's/memcmp(record->replid, sample->replid, RECORD_ID) != 0/0/' all "$unfit"
mutant evicted-not-compared protocol/guard.c \
    's/node->record.evicted != node->evicted)/0)/' all "$unfit"

# --- the round ---
mutant token-again server/engine_waits.c '
    s/^    engine_make_token(engine, operation->token);/    if (call->ttl_ns == again_ns)\
        memcpy(operation->token, again, LIMIT_TOKEN);\
    else\
        engine_make_token(engine, operation->token);\
    memcpy(again, operation->token, LIMIT_TOKEN);\
    again_ns = call->ttl_ns;/
    s/^static struct operation \*open_acquire/static char again[LIMIT_TOKEN];\
static int64_t again_ns;\
&/' all "$unfit\|rises\|rise"
mutant no-drift protocol/validity.c \
    's/return rate_share(drift, ttl_ns) + drift->margin_ns;/return 0;/' rates,clients "$unfit"
mutant no-undo protocol/round.c \
    's/    if (round->sent != 0)$/    if (0)/' all "rests on\|kept\|keeps"
mutant undo-where-yes-only protocol/round.c \
    's/send_to(round, actions, ROUND_UNDO, round->sent);/if (round->yes) send_to(round, actions, ROUND_UNDO, round->yes);/' \
    all "rests on"
mutant old-connection-not-killed protocol/link.c \
    's/if (link->last_client_id != 0 &&/if (0 \&\&/' all "rests on\|two holders"
mutant quorum-of-a-minority protocol/round.c \
    's/count(round->yes) >= quorum)/count(round->yes) >= quorum - 1)/' all "$unfit\|aborted"
mutant owed-and-forgotten protocol/link.c \
    '/^void link_owe/,/^}/s/owed_push(.*/(void)0;/' all "rests on"

# --- fences, queues, holds ---
mutant outbid-is-a-yes protocol/redis.c \
    's/ANSWER_OUTBID,/ANSWER_YES,/' all "fence\|could vote"
mutant last-come-first-served protocol/queue.c \
    's/TAILQ_INSERT_TAIL/TAILQ_INSERT_HEAD/' all "came earlier"
mutant sleeps-for-ever protocol/queue.c \
    '/^int64_t queue_wake_ns/,/^}/s/^{/{ return INT64_MAX;/' all "no grant\|after the end"
mutant never-lost protocol/hold.c \
    '/^int64_t hold_lost_ns/,/^}/s/^{/{ return INT64_MAX;/' all "two holders\|keeps"
mutant swap-without-guard server/engine_waits.c \
    's/if (engine_refuses_vote(engine, i, now_ns) == REASON_NONE \&\&/if (1 \&\&/' all "."

echo "mutants: $found found, $bad not"
[ $bad -eq 0 ]
