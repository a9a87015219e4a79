#!/bin/sh
# The simulator is tested, not trusted: with one rule taken out of the code it has to find a
# violation. Each mutant is one source or two, changed by sed, linked with the rest.
#
#     mutants.sh BUILD-FOLDER TIGHT-BUILD-FOLDER [NAME...]
#
# In the second one the same has been built with bounds that schedules meet (bounds.h).
#
# SEEDS: so many schedules for each, at most.
set -u
build=$1 tight=$2
shift 2
only=" $* "
dir=$build/mutants
seeds=${SEEDS:-20000}
count=0 lines=
from=$build
mkdir -p "$dir"

# mutate NAME SOURCE SED-SCRIPT: its object
mutate() {
    base=$dir/$1-$(basename "$2" .c)
    sed -e "$3" "$2" >"$base.c"
    if cmp -s "$2" "$base.c"; then
        echo "$1: $2 does not have what is to be taken out of it" >&2
    else
        $CC -I$from/generated $CPPFLAGS -std=c11 -O1 -w -c -o "$base.o" "$base.c" && echo "$base.o"
    fi
}

# try NAME FAULTS WHAT-MUST-BE-FOUND SOURCE SED-SCRIPT [SOURCE SED-SCRIPT]: a line, and if it was found
try() {
    name=$1 faults=$2 wanted=$3 log=$dir/$1.log
    : >"$log"
    first=$(mutate "$name" "$4" "$5")
    second=
    [ $# -le 5 ] || second=$(mutate "$name" "$6" "$7")
    other=${6:-$4} rest=
    for object in $OBJECTS; do
        case $object in
            "$build/${4%.c}.o" | "$build/${other%.c}.o") ;;
            *) rest="$rest $from/${object#"$build"/}" ;;
        esac
    done
    if [ -n "$first" ] && $CC -o "$dir/$name" $first $second $rest $LIBS >"$log" 2>&1; then
        FAULTS=$faults "$dir/$name" 1 "$seeds" >"$log" 2>&1
    fi
    # By name: a pattern would also match the objects of a mutant whose name begins alike.
    rm -f "$dir/$name" $first $second
    if line=$(grep "^FAILED, .*\($wanted\)" "$log"); then
        printf '%-28s %s\n' "$name" "$(echo "$line" | sed 's/^FAILED, commit [^,]*, //; s/ until .*//')"
    else
        printf '%-28s NOT FOUND\n' "$name"
        tail -n 3 "$log"
    fi
}

# mutant ...: the same, two at a time.
mutant() {
    [ "$only" = "  " ] || case $only in *" $1 "*) ;; *) return ;; esac
    count=$((count + 1))
    try "$@" >"$dir/$1.line" 2>&1 &
    lines="$lines $dir/$1.line"
    [ $((count % 2)) -ne 0 ] || wait
}

unfit="could vote and keep it\|two holders"

# --- the guard ---
mutant no-guard all "$unfit" engine/guard/guard.c '
    /^enum reason guard_refuses_vote/,/^}/s/^{/{ return REASON_NONE;/
    /^uint32_t guard_epoch/,/^}/s/^{/{ return 0;/
    /^static enum guard_result check_sample/,/^}/s/return GUARD_[A-Z]*;/return GUARD_PASS;/
    /^static enum guard_result take_sample/,/^}/s/return GUARD_[A-Z]*;/return GUARD_PASS;/'
mutant no-quarantine all "$unfit" engine/guard/identity.c \
    's|= recorded_ns > least_ns ? recorded_ns : least_ns;|= sample->clock.received_ns;|'
mutant no-monitor all "$unfit" engine/guard/clock_monitor.c \
    's/return MONITOR_STEPPED;/return MONITOR_STEADY;/'
mutant no-probe-behind-votes all "$unfit" engine/flight/replies.c '
    s/if (!failed && flight_is_vote(flight, command))/if (0)/
    s/if (batch == NULL || /&1 || /'
mutant remembers-votes all "remembers votes" engine/guard/guard.c \
    's/guard->all_vote_until_ns = 0;/(void)guard;/'
mutant remembers-votes-for-ever all "remembers votes" engine/guard/guard.c \
    's/guard->all_vote_until_ns = until_ns;/guard->all_vote_until_ns = INT64_MAX;/'
mutant no-epochs all "$unfit" engine/guard/guard.c \
    '/^uint32_t guard_epoch/,/^}/s/^{/{ return 0;/'
mutant always-settled all "$unfit" engine/guard/guard.c \
    's/if (node->clock.state != CLOCK_TRUSTED)$/if (0)/'
mutant no-replication-id all "$unfit" engine/guard/identity.c \
    's/memcmp(record->replid, sample->replid, RECORD_ID) != 0/0/'
mutant evicted-not-compared all "$unfit" engine/guard/identity.c \
    's/identity->record.evicted != identity->evicted)/0)/'
mutant bounds-of-before-a-step step-and-back,daemon-kill,daemon-stop,clients "$unfit" engine/guard/clock_trust.c \
    's/strcmp(entry + len, clock->known_step) != 0)/0)/'
mutant told-and-not-heeded step-and-back,daemon-kill,daemon-stop,clients "$unfit" engine/guard/clock_trust.c \
    's/if (clock->unmonitored_since_ns != 0)$/if (0)/'
mutant durable-with-other-data restart,loading,unsaved,failback,replica,flush,evict,step-forward,daemon-kill,daemon-stop,partition,clients \
    "$unfit" engine/guard/identity.c 's/!sample->was_replica \&\&//'

mutant newcomers-own-margin step-twice,clients "$unfit" engine/guard/clock_monitor.c \
    '/^bool clock_monitor_inherit/,/^}/s/floor_ns = monitor->floor_ns - hidden_ns;/floor_ns = monitor->floor_ns;/'

# --- what the simulator has found once, put back ---
mutant written-when-closed all aborted engine/engine.c '
    s/^    replies_on_closed(.*/    engine_catch_up(engine, now_ns);\
&/'
mutant quarantines-alike step-back,flush,failback,daemon-stop,clients "$unfit" engine/guard/identity.c \
    's/same_end && identity->adopted.quarantine_id == record->quarantine_id/same_end/' engine/guard/record_write.c \
    's/begins ? random : identity->record.quarantine_id/begins ? 0 : identity->record.quarantine_id/'
mutant slow-beginning step-forward,slow,hang,clients "$unfit" engine/guard/clock_monitor.c '
    s/bool anew = monitor->loose && tight;/bool anew = false;\
    if (monitor->loose \&\& tight) {\
        *monitor = fresh;\
        return MONITOR_STEADY;\
    }/' engine/guard/clock_trust.c \
    's/!clock->monitor.begun || clock->monitor.loose;/!clock->monitor.begun;/'

# --- the round ---
mutant token-again all "$unfit" engine/locks/waits.c '
    s/^    flights_make_token(manager->flights, flight->token);/    if (pending == again_for \&\& pending->received_ns == again_ns)\
        memcpy(flight->token, again, LIMIT_TOKEN);\
    else\
        flights_make_token(manager->flights, flight->token);\
    memcpy(again, flight->token, LIMIT_TOKEN);\
    again_for = pending;\
    again_ns = pending->received_ns;/
    s/^static struct flight \*open_acquire/static char again[LIMIT_TOKEN];\
static struct pending_request *again_for;\
static int64_t again_ns;\
&/'
mutant no-drift rates,clients "$unfit" engine/round/validity.c \
    's/return rate_share(drift, ttl_ns) + drift->margin_ns;/return 0;/'
mutant no-undo all "rests on" engine/round/round.c \
    's/    if (round->sent != 0)$/    if (0)/'
mutant undo-where-yes-only all "rests on" engine/round/round.c \
    's/send_to(round, actions, ROUND_UNDO, round->sent);/if (round->yes) send_to(round, actions, ROUND_UNDO, round->yes);/'
mutant quorum-of-a-minority all "$unfit\|aborted" engine/round/round.c \
    's/count(round->yes) >= quorum)/count(round->yes) >= quorum - 1)/'
mutant pending_releases-and-forgotten all "rests on" engine/master/link.c \
    '/^void link_defer_release/,/^}/s/pending_releases_push(.*/(void)0;/'

# --- releases that go together ---
mutant lost-with-others cut,slow,daemon-stop,clients "rests on" engine/flight/flights.c \
    '/^void flights_fail(/,/^}/s/^        write_defer_release(.*/        (void)0;/'
mutant apart-and-forgotten apart "keeps" engine/flight/replies.c \
    '/^static void on_releases/,/^}/s/^            release_alone(.*/            (void)now_ns;/'
mutant refused-and-believed denied "rests on" protocol/redis.c \
    '/^enum answer_kind redis_deleted/,/^}/s/return ANSWER_FAILED;/return ANSWER_YES;/'
mutant refused-and-forgotten denied "keeps" engine/flight/replies.c \
    '/^static void on_native_release/,/^}/s/^    release_alone(.*/    (void)now_ns;/'
mutant refused-with-others all "rests on" protocol/redis.c \
    '/^enum answer_kind redis_released/,/^}/s/return ANSWER_FAILED;/return ANSWER_YES;/'
mutant not-put-off all "keeps" engine/flight/write.c \
    's/^    if (refused != 0)$/    if (0)/'
mutant one-key-twice all aborted engine/flight/write.c \
    's/while (key->batched)/while (0)/'

# --- fences, queues, holds ---
mutant outbid-is-a-yes all "fence\|could vote" protocol/redis.c \
    's/ANSWER_OUTBID,/ANSWER_YES,/'
mutant last-come-first-served all "came earlier" engine/locks/queue.c \
    's/TAILQ_INSERT_TAIL/TAILQ_INSERT_HEAD/'
mutant broken-without-a-freeze undeletable,breaks,clients unfrozen engine/locks/breaks.c '
    /^static bool on_status/,/^}/s/^    return true;/    memcpy(breaking->frozen_token, token, LIMIT_TOKEN);\
    return breaking->frozen = true;/'
mutant broken-by-a-minority unfreezable,breaks,clients unfrozen engine/locks/breaks.c \
    '/^static bool on_frozen/,/^}/s/outcome == OUTCOME_OK/outcome == OUTCOME_NOQUORUM || &/
    s/assert(frozen || .*/(void)0;/'
mutant broken-after-a-failed-freeze unfreezable,breaks,clients "two holders" engine/locks/breaks.c \
    '/^static bool on_frozen/,/^}/s/^    \/\* The lock was gone.*/    if (outcome == OUTCOME_NOQUORUM)\
        flights_defer_release(manager->flights, freeze->key, breaking->token, nodes_all(manager->flights->node_count), now_ns);/'
mutant granted-unheard all "$unfit\|rests on\|keeps" engine/engine.c \
    's/flights_conclude(&engine->flights, flight, delivered, now_ns)/(void)delivered, flights_conclude(\&engine->flights, flight, true, now_ns)/'
mutant sleeps-for-ever all "forgot one who waits\|no grant\|after the end\|sleeps while" engine/locks/queue.c \
    '/^int64_t queue_wake_ns/,/^}/s/^{/{ return INT64_MAX;/'
mutant free-masters-report untracked,leftover "sleeps while" engine/locks/queue.c \
    's/(queue->held & queue->tracked) | queue->probing/queue->tracked | queue->probing/'
mutant asks-who-may-not-vote all "over and over" engine/locks/waits.c \
    '/^static uint32_t reachable/,/^}/s/master_refuses_vote(&flights->masters\[i\], now_ns)/link_refuses_vote(\&flights->masters[i].link)/'
mutant asks-who-fails-to-vote full,clog,cut,clients,foreign "over and over" engine/round/round.c \
    '/^bool round_lacked_votes/,/^}/s/>= round->rules->quorum/> round->rules->node_count/'
mutant lost-too-late partition,clients "two holders" engine/locks/hold.c \
    '/^int64_t hold_lost_ns/,/^}/s/return .*;/return hold->until_ns + 10 * hold->ttl_ns;/'
mutant lingers-not clients "two holders" engine/locks/grants.c \
    's/lock->lingers && !by_quit/0/'

# --- bounds, where they are met; and what is found sooner where there is a crowd ---
from=$tight
mutant old-connection-not-killed cut,clog,clients,jitter,daemon-stop "rests on\|two holders" engine/master/link.c \
    's/link->last_client_id != 0 && memcmp/0 \&\& memcmp/'
mutant hand-over-without-room all aborted engine/flight/flights.c \
    '/^uint32_t flights_hand_over_nodes(/,/^}/s/^    write_batched_first(.*/    (void)key;/'
mutant room-of-the-guard-taken all aborted engine/master/link.c \
    's/return link->load < LIMIT_LINK_RELEASES ? REASON_NONE : REASON_BACKLOG;/return REASON_NONE;/'
mutant room-of-releases-taken all aborted engine/master/link.c \
    's/return link->load < LIMIT_LINK_VOTES ? REASON_NONE : REASON_BACKLOG;/return REASON_NONE;/'
mutant pending_releases-till-doomsday all "for ever\|rests on" engine/master/link.c \
    '/^const struct outstanding \*link_on_reply/,/^}/s/if (link->pending_releases.unsent > 0)/if (0)/'
mutant all-together all "aborted\|crashed" engine/flight/write.c \
    's/ && count < LIMIT_BATCH) {/) {/'
mutant holds-without-end all "bound of holds" engine/locks/waits.c \
    's/manager->holding >= LIMIT_HOLDS/0/'
mutant no-lock-forgotten all aborted engine/locks/grants.c \
    '/^static struct lock \*take_lock/,/^}/s/^        forget_lock(.*/        (void)0;/'
mutant no-extended-forgotten all aborted engine/locks/extensions.c \
    '/^static struct extended \*add_entry/,/^}/s/^        drop_entry(.*/        (void)0;/'
mutant refused-in-line all "aborted\|crashed" engine/locks/waits.c \
    '/^static void answer_limit/,/^}/s/waits_leave(manager, pending);/(void)0;/'
mutant request-not-closed all "keeps\|crashed\|not met" engine/locks/requests.c \
    '/^static struct flight \*open_round/,/^}/s/^        pending_close(.*/        (void)0;/'
mutant renewals-not-counted-back all "keeps" engine/locks/grants.c \
    's/^    manager->renewing -= .*/    (void)0;/'
mutant looks-not-counted-back all "keeps" engine/flight/replies.c \
    '/^static void fail_outstanding/,/^}/s/end_key_probe(flights, node, outstanding)/outstanding->owner/'
mutant kept-without-end all "bound of link_kept\|aborted\|crashed" engine/flight/replies.c \
    's/count == LIMIT_LINK_KEPT/0/'
mutant yeses-kept-without-end all "bound of link_kept\|aborted\|crashed" engine/flight/replies.c \
    's/kept == LIMIT_LINK_KEPT/0/'
mutant run-of-the-last-node-alone all "aborted\|crashed" engine/flight/write.c \
    's/joined |= link_expect_vote/joined = link_expect_vote/'
mutant run-of-a-slot-before all "aborted\|crashed" engine/master/link.c \
    '/^static void push_outstanding/,/^}/s/    slot->more = 0;/    (void)0;/'
mutant kept-no-more-and-forgotten all "keeps" engine/flight/replies.c \
    '/^static void keep_vote/,/^}/s/^        flights_deliver(.*/        if (0) flights_deliver(flights, node, outstanding->owner, ROUND_VOTE,/'
mutant kept-no-more-and-counted all "$unfit" engine/flight/replies.c '
    /^static void keep_vote/,/^}/{
        s/^        flights_deliver(.*/        flights_deliver(flights, node, outstanding->owner, ROUND_VOTE, answer, now_ns);/
        /\.kind = ANSWER_FAILED/d
    }'
mutant requests-without-end all "more requests under way" engine/locks/requests.c \
    's/client->pending_count >= LIMIT_CLIENT_REQUESTS/0/'
mutant requests-not-counted-back all "bound that is not met" engine/locks/manager.c \
    's/pending->client->pending_count--;/(void)0;/'
mutant waiters-without-end all "bound of waiters" engine/locks/waits.c \
    's/manager->waiting >= manager->rules->waiters ?/0 ?/'
mutant waiters-not-counted-back all "waiters" engine/locks/waits.c \
    's/manager->waiting--;/(void)0;/'
mutant who-does-not-wait-is-refused all "bound that is not met" engine/locks/waits.c \
    '/^static const char \*limit_exceeded/,/^}/s/if (request->wait_ms == 0)/if (0)/'
mutant no-room-for-a-pending all "aborted\|crashed" engine/locks/waits.c \
    '/^const char \*waits_lock/,/^}/s/if (pending == NULL)/if (0)/'
mutant no-room-for-a-request all "aborted\|crashed" engine/locks/requests.c \
    '/^static struct flight \*open_round/,/^}/s/if (pending == NULL)/if (0)/'
mutant no-room-to-break all "aborted\|crashed" engine/locks/breaks.c \
    '/^static struct flight \*open_next_round/,/^}/s/if (flight == NULL)/if (0)/'
mutant break-refused-and-kept all "keeps" engine/locks/breaks.c \
    '/^static void refuse_break/,/^}/s/pool_give(&manager->breakings, breaking);/(void)0;/'
mutant breaks-not-given-back all "keeps" engine/locks/breaks.c \
    '/^struct breaking \*breaks_on_settled/,/^}/s/pool_give(&manager->breakings, breaking);/(void)0;/'

wait
cat $lines
bad=$(cat $lines | grep -c 'NOT FOUND')
echo "mutants: $((count - bad)) found, $bad not"
[ "$bad" -eq 0 ] && [ $count -gt 0 ]
