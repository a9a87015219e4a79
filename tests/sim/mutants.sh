#!/bin/bash
# Tests the simulator: if one rule is removed from the code, the simulator must find a violation. A
# mutant is one source file or two, changed by sed and linked with the other objects. The name of a
# mutant says what its broken code does.
#
#     mutants.sh BUILD-FOLDER TIGHT-BUILD-FOLDER [NAME...]
#
# TIGHT-BUILD-FOLDER has the build with limits that schedules reach (bounds.h). The environment variable
# SEEDS sets how many schedules are tried at most for each mutant.
set -u
build=$1 tight=$2
shift 2
only=" $* "
dir=$build/mutants
seeds=${SEEDS:-30000}
count=0 lines=
from=$build
mkdir -p "$dir"
# A mutant that outlives the script would remove files of the next run.
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 1' HUP INT TERM

# mutate NAME SOURCE SED-SCRIPT: compiles the changed source, and prints the name of the object
mutate() {
    base=$dir/$1-$(basename "$2" .c)
    sed -e "$3" "$2" >"$base.c"
    if cmp -s "$2" "$base.c"; then
        echo "$1: $2 has no match for the sed script" >&2
    else
        $CC -I$from/generated $CPPFLAGS -std=c11 -O1 -w -c -o "$base.o" "$base.c" && echo "$base.o"
    fi
}

# try NAME FAULTS VIOLATION SOURCE SED-SCRIPT [SOURCE SED-SCRIPT]: runs a mutant and prints its result.
# VIOLATION is a pattern that the message of the expected violation matches.
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
        FAULTS=$faults setpriv --pdeathsig KILL "$dir/$name" 1 "$seeds" >"$log" 2>&1
    fi
    # A pattern such as $name* would also match the objects of another mutant with a longer name.
    rm -f "$dir/$name" $first $second
    if line=$(grep "^FAILED, .*\($wanted\)" "$log"); then
        printf '%-33s %s\n' "$name" "$(echo "$line" | sed 's/^FAILED, commit [^,]*, //; s/ until .*//')"
    else
        printf '%-33s NOT FOUND\n' "$name"
        tail -n 3 "$log"
    fi
}

# mutant ...: runs `try ...` in the background, two at a time.
mutant() {
    [ "$only" = "  " ] || case $only in *" $1 "*) ;; *) return ;; esac
    count=$((count + 1))
    [ $count -le 2 ] || wait -n
    try "$@" >"$dir/$1.line" 2>&1 &
    lines="$lines $dir/$1.line"
}

unfit="could vote and keep it\|two holders"

# --- the guard ---
mutant no-guard all "$unfit" engine/guard/guard.c '
    /^enum reason guard_refuses_vote/,/^}/s/^{/{ return REASON_NONE;/
    /^uint32_t guard_epoch/,/^}/s/^{/{ return 0;/
    /^static enum guard_result check_sample/,/^}/s/return GUARD_[A-Z]*;/return GUARD_PASS;/
    /^static enum guard_result take_sample/,/^}/s/return GUARD_[A-Z]*;/return GUARD_PASS;/'
mutant no-quarantine all "$unfit" engine/guard/identity.c \
    's|= max(recorded_ns, least_ns);|= sample->clock.received_ns;|'
mutant no-monitor all "$unfit" engine/guard/clock_monitor.c \
    's/return MONITOR_STEPPED;/return MONITOR_STEADY;/'
mutant no-probe-after-votes all "$unfit" engine/flight/replies.c '
    s/if (!failed && flight_is_vote(flight, command))/if (0)/
    s/if (batch == NULL || /&1 || /'
mutant all-vote-cache-not-reset all "all-vote cache" engine/guard/guard.c \
    's/guard->all_vote_until_ns = 0;/(void)guard;/'
mutant all-vote-cache-never-expires all "all-vote cache" engine/guard/guard.c \
    's/guard->all_vote_until_ns = until_ns;/guard->all_vote_until_ns = INT64_MAX;/'
mutant no-epochs all "$unfit" engine/guard/guard.c \
    '/^uint32_t guard_epoch/,/^}/s/^{/{ return 0;/'
mutant clock-always-trusted all "$unfit" engine/guard/guard.c \
    's/if (node->clock.state != CLOCK_TRUSTED)$/if (0)/'
mutant no-replication-id all "$unfit" engine/guard/identity.c \
    's/memcmp(record->replid, sample->replid, RECORD_ID) != 0/0/'
mutant evicted-keys-not-compared all "$unfit" engine/guard/identity.c \
    's/identity->record.evicted != identity->evicted)/0)/'
mutant attestation-from-before-a-step step-and-back,daemon-kill,daemon-stop,clients "$unfit" engine/guard/clock_trust.c \
    's/strcmp(entry + len, clock->known_step) != 0)/0)/'
mutant unmonitored-gap-ignored step-and-back,daemon-kill,daemon-stop,clients "$unfit" engine/guard/clock_trust.c \
    's/if (clock->unmonitored_since_ns != 0)$/if (0)/'
mutant durable-master-was-a-replica restart,loading,unsaved,failback,replica,flush,evict,step-forward,daemon-kill,daemon-stop,partition,clients \
    "$unfit" engine/guard/identity.c 's/!sample->was_replica \&\&//'
mutant durable-master-has-evicted restart,loading,evict,partition,clients "$unfit" engine/guard/identity.c \
    's/ \&\& identity->evicted == 0//'

mutant older-data-not-noticed rewind,clients "$unfit" engine/guard/identity.c \
    's/^        identity->went_back = true;/        (void)identity;/'
mutant names-not-leased repoint,clients,daemon-kill "$unfit" engine/guard/guard.c '
    s/enum reason leased = name_lease_refuses(.*/enum reason leased = REASON_NONE;/
    s/return nodes_count(node->lease.held_on) >= guard->rules.quorum;/return true;/
    /^static bool awaits_lease_answer/,/^}/s/return true;/return false;/'
mutant lease-ends-with-the-quarantine repoint,clients,daemon-kill "$unfit" engine/guard/guard.c \
    's|heartbeat->lease_ms = .*|heartbeat->lease_ms = periods->quarantine_ns / NS_PER_MS;|'
mutant expired-conflict-not-asked-about repoint,jitter,clients "$unfit" engine/guard/guard.c \
    's/~node->lease.held_on;/~(node->lease.held_on | node->lease.conflicts);/'
mutant lost-lease-ends-a-conflict repoint,lost-lease,clients "$unfit" engine/guard/name_lease.c \
    's/(keeps \&\& repeated))/1)/'
mutant quarantine-ends-a-conflict repoint,lost-lease,clients "$unfit" engine/guard/guard.c \
    's/bool kept = keeps \&\& .*;/bool kept = keeps;/'
mutant newcomer-starts-with-full-margin step-twice,clients "$unfit" engine/guard/clock_monitor.c \
    '/^bool clock_monitor_inherit/,/^}/s/floor_ns = monitor->floor_ns - hidden_ns;/floor_ns = monitor->floor_ns;/'

# --- semaphores ---
mutant last-lock-is-served-first all "came later got one\|never tried\|sleeps while" engine/locks/semaphore.c \
    's/TAILQ_FOREACH (waiter, list, entry)/TAILQ_FOREACH_REVERSE (waiter, list, waiter_list, entry)/'
mutant slot-beyond-the-number all "invalid reply to LOCK" engine/locks/semaphore.c \
    's/if (next == NULL || next->slots < seeker->number)/if (next == NULL)/'
mutant ready-slots-forgotten leftover,clients "sleeps while" engine/locks/semaphore.c \
    's/seeker->number <= slots \&\& semaphores_draw/0 \&\& semaphores_draw/'
mutant slots-not-watched all "sleeps while" engine/locks/slots.c \
    's/watch(manager, semaphore, next->slots, now_ns);/(void)watch;/'
mutant seeker-does-not-make-way clients "sleeps while" engine/locks/waits.c \
    's/if (queue->length == 1)$/if (queue->length > 0)/'
mutant seeker-stays-first all "came later got one\|sleeps while" engine/locks/waits.c \
    's/^        seeker_requeue(seeker, now_ns);/        (void)seeker;/'
mutant one-try-without-wait all "never tried" engine/locks/slots.c \
    's/TRIES_WITHOUT_WAIT = 8/TRIES_WITHOUT_WAIT = 1/'
mutant impatient-locks-wait all "after the end of its WAIT" engine/locks/slots.c \
    's/if (others_wait || semaphore->serving == 0 || .*/if (0)/'
mutant wait-for-a-slot-never-over all "after the end of its WAIT" engine/locks/waits.c \
    's/pending->wait_over = pending->waits;/(void)0;/'
mutant refused-lock-stays-at-its-slot all "sleeps while\|after the end of its WAIT" engine/locks/waits.c '
    s/^        seeker_stop(&manager->semaphores, pending->seeker);/        (void)0;/
    s/if (served != NULL \&\& served->flight == NULL/if (0 \&\& served->flight == NULL/'
mutant seekers-outlive-their-locks all "keeps\|aborted" engine/locks/slots.c \
    's/            end(manager, semaphore, now_ns);/            (void)end;/'

# --- bugs that the simulator has found, put back ---
mutant writes-to-closed-connection all aborted engine/engine.c '
    s/^    replies_on_closed(.*/    engine_catch_up(engine, now_ns);\
&/'
mutant equal-quarantine-ids step-back,flush,failback,daemon-stop,clients "$unfit\|does not get its vote back" engine/guard/identity.c \
    's/same_end && identity->adopted.quarantine_id == record->quarantine_id/same_end/' engine/guard/record_write.c \
    's/begins ? random : identity->record.quarantine_id/begins ? 0 : identity->record.quarantine_id/'
mutant fast-sample-resets-monitor step-forward,slow,clients "$unfit" engine/guard/clock_monitor.c '
    s/bool anew = monitor->loose && tight;/bool anew = false;\
    if (monitor->loose \&\& tight) {\
        *monitor = fresh;\
        return MONITOR_STEADY;\
    }/' engine/guard/clock_trust.c \
    's/!clock->monitor.begun || clock->monitor.loose;/!clock->monitor.begun;/'

# --- the round ---
mutant token-reused scripts,unbatched,undeletable,clients "$unfit" engine/locks/waits.c '
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
mutant no-drift rates,clients "$unfit\|does not get its vote back" engine/round/validity.c \
    's/return rate_share(drift, ttl_ns) + drift->margin_ns;/return 0;/'
mutant no-undo all "still on" engine/round/round.c \
    's/    if (round->sent != 0)$/    if (0)/'
mutant undo-only-where-yes all "still on" engine/round/round.c \
    's/send_to(round, actions, ROUND_UNDO, round->sent);/if (round->yes) send_to(round, actions, ROUND_UNDO, round->yes);/'
mutant minority-is-a-quorum all "$unfit\|aborted" engine/round/round.c \
    's/count(round->yes) >= quorum)/count(round->yes) >= quorum - 1)/'
mutant pending-releases-dropped all "still on" engine/master/link.c \
    '/^void link_defer_release/,/^}/s/pending_releases_push(.*/(void)0;/'

# --- batches of releases ---
mutant lost-batch-not-retried cut,slow,daemon-stop,clients "still on" engine/flight/flights.c \
    '/^void flights_fail(/,/^}/s/^        write_defer_release(.*/        (void)0;/'
mutant refused-batch-not-retried unbatched "keeps" engine/flight/replies.c \
    '/^static void on_releases/,/^}/s/^            release_alone(.*/            (void)now_ns;/'
mutant refused-delete-is-a-yes denied "still on" protocol/redis.c \
    '/^enum answer_kind redis_deleted/,/^}/s/return ANSWER_FAILED;/return ANSWER_YES;/'
mutant refused-native-delete-not-retried denied "keeps" engine/flight/replies.c \
    '/^static void on_native_release/,/^}/s/^    release_alone(.*/    (void)now_ns;/'
mutant refused-batch-is-a-yes all "still on" protocol/redis.c \
    '/^enum answer_kind redis_released/,/^}/s/return ANSWER_FAILED;/return ANSWER_YES;/'
mutant refused-write-not-deferred all "keeps" engine/flight/write.c \
    's/^    if (refused != 0)$/    if (0)/'
mutant one-key-twice-in-a-batch all aborted engine/flight/write.c \
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
mutant broken-after-a-failed-freeze unfreezable,breaks,clients "two holders\|got FREE" engine/locks/breaks.c \
    '/^static bool on_frozen/,/^}/s/^    \/\* The lock was gone.*/    if (outcome == OUTCOME_NOQUORUM)\
        flights_defer_release(manager->flights, freeze->key, breaking->token, nodes_all(manager->flights->node_count), now_ns);/'
mutant undelivered-grant-kept all "$unfit\|still on\|keeps" engine/engine.c \
    's/flights_conclude(&engine->flights, flight, delivered, now_ns)/(void)delivered, flights_conclude(\&engine->flights, flight, true, now_ns)/'
mutant queue-never-wakes all "forgot a waiter\|no grant\|after the end\|sleeps while" engine/locks/queue.c \
    '/^int64_t queue_wake_ns/,/^}/s/^{/{ return INT64_MAX;/'
mutant free-masters-count-as-tracked untracked,leftover "sleeps while" engine/locks/queue.c \
    's/(queue->held & queue->tracked) | queue->probing/queue->tracked | queue->probing/'
mutant nonvoters-count-as-reachable all "without a pause" engine/locks/waits.c \
    '/^static uint32_t reachable/,/^}/s/master_refuses_vote(&flights->masters\[i\], now_ns)/link_refuses_vote(\&flights->masters[i].link)/'
mutant no-pause-after-failed-votes full,clog,cut,clients,foreign "without a pause" engine/round/round.c \
    '/^bool round_lacked_votes/,/^}/s/>= round->rules->quorum/> round->rules->node_count/'
mutant returned-vote-wakes-no-queue all "sleeps while" engine/flight/masters.c \
    '/^void masters_note_votes/,/^}/s/^            probe_again(flights, i);/            (void)0;/'
mutant quiet-time-begins-with-the-wait all "which is free" engine/locks/waits.c \
    's/resource->seeker != NULL ? now_ns : lock->hold.since_ns/now_ns/'
mutant one-denial-is-gone all "said to be gone" engine/round/round.c \
    's/unsigned denials_needed = .*/unsigned denials_needed = 1;/'
mutant silence-is-free hang,cut,partition,clients "got FREE for" engine/round/round.c \
    's/holding + pending + nodes_count(round->failed) < quorum/holding + pending < quorum/'
mutant lost-reported-too-late partition,clients "two holders" engine/locks/hold.c \
    '/^int64_t hold_lost_ns/,/^}/s/return .*;/return hold->until_ns + 10 * hold->ttl_ns;/'
mutant linger-ignored clients "two holders\|said to be gone" engine/locks/requests.c \
    's/lock->lingers && !by_quit/0/'
mutant reset-ends-the-client all "two holders" engine/locks/requests.c \
    's/if (how != ENGINE_QUIT)$/if (1)/'
mutant reset-keeps-the-holds clients "after its HOLD has ended" engine/locks/requests.c \
    's/else if (how != ENGINE_ENDING)$/else if (how == ENGINE_HALF_CLOSED)/'
mutant reset-keeps-the-requests clients "without a request\|never got\|still on" engine/locks/requests.c \
    '/^void requests_on_end/,/^}/s/abandon_requests(manager, client, how != ENGINE_GONE, tell/if (how != ENGINE_QUIT) &/'
mutant unproven-end-releases clients "two holders" engine/locks/requests.c \
    's/else if (how != ENGINE_ENDING)$/else/'
mutant ended-client-keeps-extending clients "after the end of its client" engine/locks/requests.c \
    's/if (how != ENGINE_QUIT)$/if (how == ENGINE_GONE)/'
mutant ended-hold-is-extended undeletable,clients "after its HOLD has ended" engine/locks/waits.c \
    '/^void waits_release/,/^}/s/^        extension_limits_end(.*$//'
mutant crossed-extension-is-granted clients "after its HOLD has ended" engine/round/round.c \
    's/round->token_releasing ? OUTCOME_GONE : //'

mutant extended-token-is-refused all "not reached: extensions" engine/locks/extension_limits.c \
    's/if (extended != NULL \&\& extended->count >= .*)/if (extended != NULL)/'
mutant every-extension-is-too-long all "not reached: hold" engine/locks/extension_limits.c \
    's/now_ns + ttl_ns - since_ns > limits->rules->max_hold_ns/since_ns >= 0/'

# --- admission ---
mutant held-back-for-ever all 'in vain\|sleeps while' engine/engine.c \
    's/else if (!requests_start_next(&engine->manager, now_ns))/else/'
mutant settled-round-keeps-its-place all 'sleeps while' engine/flight/flights.c \
    's/^    admission_on_settled(.*//'

# --- in the build with tight limits: limits, and bugs that a crowd of clients finds sooner ---
from=$tight
mutant old-connection-not-killed cut,clog,jitter "still on\|two holders" engine/master/link.c \
    's/link->last_client_id != 0 && memcmp/0 \&\& memcmp/'
mutant hand-over-without-room all aborted engine/flight/flights.c \
    '/^uint32_t flights_hand_over_nodes(/,/^}/s/^    write_batched_first(.*/    (void)key;/'
mutant releases-use-room-of-guard all aborted engine/master/link.c \
    's/return link->load < LIMIT_LINK_RELEASES ? REASON_NONE : REASON_BACKLOG;/return REASON_NONE;/'
mutant votes-use-room-of-releases all aborted engine/master/link.c \
    's/return link->load < LIMIT_LINK_VOTES ? REASON_NONE : REASON_BACKLOG;/return REASON_NONE;/'
mutant no-resend-after-a-reply all "pending release\|still on" engine/master/link.c \
    '/^const struct outstanding \*link_on_reply/,/^}/s/if (link->pending_releases.unsent > 0)/if (0)/'
mutant batch-without-limit all "aborted\|crashed" engine/flight/write.c \
    's/ && count < LIMIT_BATCH) {/) {/'
mutant holds-without-limit all "limit of holds" engine/locks/intake.c \
    's/manager->holding >= LIMIT_HOLDS/0/'
mutant starts-not-renewed-without-output all "in vain" engine/engine.c \
    's/ || engine->manager.starts_left == 0//'
mutant no-lock-evicted all aborted engine/locks/grants.c \
    '/^static struct lock \*take_lock/,/^}/s/^        grants_forget(.*/        (void)0;/'
mutant no-extended-token-evicted all aborted engine/locks/extension_limits.c \
    '/^static struct extended \*add_entry/,/^}/s/^        drop_entry(.*/        (void)0;/'
mutant refused-waiter-stays-queued all "aborted\|crashed" engine/locks/waits.c \
    '/^static void answer_limit/,/^}/s/waits_leave(manager, pending);/(void)0;/'
mutant request-not-closed all "keeps\|crashed\|not reached" engine/locks/requests.c \
    '/^static struct flight \*open_round/,/^}/s/^        pending_close(.*/        (void)0;/'
mutant renewals-not-counted-back all "keeps" engine/locks/grants.c \
    's/^    manager->renewing -= .*/    (void)0;/'
mutant probes-not-counted-back all "keeps" engine/flight/replies.c \
    '/^static void fail_outstanding/,/^}/s/end_key_probe(flights, node, outstanding)/outstanding->owner/'
mutant kept-votes-without-limit all "limit of link_kept\|aborted\|crashed" engine/flight/replies.c \
    's/count == LIMIT_LINK_KEPT/0/'
mutant kept-yeses-without-limit all "limit of link_kept\|aborted\|crashed" engine/flight/replies.c \
    's/kept == LIMIT_LINK_KEPT/0/'
mutant batch-joined-by-last-node-only all "aborted\|crashed" engine/flight/write.c \
    's/joined |= link_expect_vote/joined = link_expect_vote/'
mutant slot-keeps-old-batch-count all "aborted\|crashed" engine/master/link.c \
    '/^static void push_outstanding/,/^}/s/    slot->more = 0;/    (void)0;/'
mutant vote-without-room-dropped all "keeps" engine/flight/replies.c \
    '/^static void keep_vote/,/^}/s/^        flights_deliver(.*/        if (0) flights_deliver(flights, node, outstanding->owner, ROUND_VOTE,/'
mutant vote-without-room-counted all "$unfit" engine/flight/replies.c '
    /^static void keep_vote/,/^}/{
        s/^        flights_deliver(.*/        flights_deliver(flights, node, outstanding->owner, ROUND_VOTE, answer, now_ns);/
        /\.kind = ANSWER_FAILED/d
    }'
mutant requests-without-limit all "more requests in flight" engine/locks/requests.c \
    's/client->pending_count >= LIMIT_CLIENT_REQUESTS/0/'
mutant requests-not-counted-back all "limit that is not reached" engine/locks/manager.c \
    's/pending->client->pending_count--;/(void)0;/'
mutant waiters-without-limit all "limit of waiters" engine/locks/intake.c \
    's/manager->waiting >= manager->rules->waiters ?/0 ?/'
mutant waiters-not-counted-back all "waiters" engine/locks/waits.c \
    's/manager->waiting--;/(void)0;/'
mutant waiter-limit-refuses-plain-lock all "limit that is not reached" engine/locks/intake.c \
    '/^static const char \*limit_exceeded/,/^}/s/if (request->wait_ms == 0)/if (0)/'
mutant lock-ignores-full-request-table all "aborted\|crashed" engine/locks/intake.c \
    '/^const char \*intake_lock/,/^}/s/if (pending == NULL)/if (0)/'
mutant round-ignores-full-request-table all "aborted\|crashed" engine/locks/requests.c \
    '/^static struct flight \*open_round/,/^}/s/if (pending == NULL)/if (0)/'
mutant break-ignores-full-flight-table all "aborted\|crashed" engine/locks/breaks.c \
    '/^static struct flight \*open_next_round/,/^}/s/if (flight == NULL)/if (0)/'
mutant refused-break-leaked all "keeps" engine/locks/breaks.c \
    '/^static void refuse_break/,/^}/s/pool_give(&manager->breakings, breaking);/(void)0;/'
mutant settled-break-leaked all "keeps" engine/locks/breaks.c \
    '/^struct breaking \*breaks_on_settled/,/^}/s/pool_give(&manager->breakings, breaking);/(void)0;/'

wait
cat $lines </dev/null
bad=$(cat $lines </dev/null | grep -c 'NOT FOUND')
echo "mutants: $((count - bad)) found, $bad not"
[ "$bad" -eq 0 ] && [ $count -gt 0 ]
