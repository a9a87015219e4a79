#include "engine/locks/waits.h"

#include <assert.h>
#include <string.h>

#include "engine/flight/write.h"
#include "engine/locks/grants.h"
#include "engine/locks/queue_timer.h"
#include "engine/round/node_set.h"
#include "protocol/units.h"

/* The LOCK that the next round runs for. NULL: there are no waiters, or the first one is a seeker
 * that serves no LOCK. */
static struct pending_request *first_lock(const struct resource *resource)
{
    struct waiter *first = TAILQ_FIRST(&resource->queue.waiters);
    if (first == NULL)
        return NULL;
    return first->seeks ? seeker_of(first)->serves : pending_of(first);
}

/* --- answers --- */

void waits_leave(struct lock_manager *manager, struct pending_request *pending)
{
    struct resource *resource = pending->resource;
    if (pending->slots > 0)
        semaphore_leave(&manager->semaphores, pending);
    else
        queue_leave(&resource->queue, &pending->waiter);
    if (pending->awaits_start)
        start_queue_leave(&manager->start_queue, pending);
    timers_set(&manager->timers, &pending->waiter.wait_deadline, TIMER_NEVER);
    if (!pending->waits) {
        manager->impatient--;
        resource->impatient--;
    } else {
        manager->waiting--;
        if (--resource->waits == 0) {
            LIST_REMOVE(resource, waited_for);
            manager->waited_for_count--;
        }
    }
    if (pending->hold)
        manager->holding--;
}

/* If the last round for this resource found no quorum, and no quorum votes now either, note why
 * each master has no vote now: the queue may have rested since that round
 * (queue_timer_rest_until_ns()). noinline: keeps this code out of LOCKs that start a round. */
__attribute__((noinline)) static void renew_reasons(const struct lock_manager *manager,
                                                    struct resource *resource, int64_t now_ns)
{
    enum reason reasons[LIMIT_NODES];
    unsigned votes = 0;
    if (resource->last_outcome != OUTCOME_NOQUORUM)
        return;
    for (unsigned i = 0; i < manager->flights->node_count; i++) {
        reasons[i] = master_refuses_vote(&manager->flights->masters[i], now_ns);
        votes += reasons[i] == REASON_NONE;
    }
    if (votes < manager->rules->round.quorum)
        memcpy(resource->last_reasons, reasons, sizeof(resource->last_reasons));
}

/* A reply with the result of the last round for this resource, to a LOCK that was received at
 * received_ns. */
static struct reply last_reply(const struct lock_manager *manager, const struct resource *resource,
                               int64_t hint_ms, int64_t received_ns, int64_t now_ns)
{
    struct reply reply = {
        .outcome = resource->last_outcome,
        .elapsed_ms = elapsed_for_client_ms(&manager->rules->round.drift, received_ns, now_ns),
        .hint_ms = hint_ms,
    };
    if (reply.outcome == OUTCOME_NOQUORUM)
        manager_explain_votes(manager, resource->last_reasons, &reply);
    return reply;
}

struct reply waits_last_reply(const struct lock_manager *manager, struct resource *resource,
                              int64_t hint_ms, int64_t received_ns, int64_t now_ns)
{
    renew_reasons(manager, resource, now_ns);
    return last_reply(manager, resource, hint_ms, received_ns, now_ns);
}

/* For a LOCK with WAIT: count the time from its arrival to until_ns as its time in the queue. */
static void count_wait(struct lock_manager *manager, const struct pending_request *pending,
                       int64_t until_ns)
{
    if (pending->waits)
        histogram_add(&manager->stats->queued, until_ns - pending->received_ns);
}

/* Remove a LOCK and send it this reply; or SHUTDOWN if the daemon stops, and the LOCK waits or has
 * slots that it did not try. */
static void end_wait(struct lock_manager *manager, struct pending_request *pending,
                     struct reply reply, int64_t now_ns)
{
    if (manager->draining && (pending->waits || pending->slots > 1))
        reply.outcome = OUTCOME_SHUTDOWN;
    count_wait(manager, pending, now_ns);
    waits_leave(manager, pending);
    manager_reply(manager, pending, ROUND_ACQUIRE, &reply);
}

/* Reply with the result of the last round for its resource to a LOCK whose wait is over. */
static void answer_waiter(struct lock_manager *manager, struct pending_request *pending,
                          int64_t hint_ms, int64_t now_ns)
{
    end_wait(manager, pending,
             last_reply(manager, pending_resource(pending), hint_ms, pending->received_ns, now_ns),
             now_ns);
}

struct reply waits_slots_reply(const struct lock_manager *manager, struct semaphore *semaphore,
                               unsigned slots, int64_t received_ns, int64_t ends_ns, int64_t now_ns)
{
    int64_t hint_ms;
    struct resource *soonest = semaphore_soonest(semaphore, slots, now_ns, &hint_ms);
    struct reply reply = {.outcome = OUTCOME_HELD, .hint_ms = hint_ms};
    if (soonest != NULL)
        reply = waits_last_reply(manager, soonest, hint_ms, received_ns, now_ns);
    if (ends_ns == TIMER_NEVER || reply.outcome != OUTCOME_HELD)
        return reply;
    int64_t ends_ms = (ends_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    if (hint_ms < 0 || ends_ms < hint_ms)
        reply = (struct reply){.outcome = OUTCOME_HELD, .hint_ms = max(ends_ms, 0)};
    return reply;
}

void waits_answer_slots(struct lock_manager *manager, struct pending_request *pending,
                        int64_t ends_ns, int64_t now_ns)
{
    end_wait(manager, pending,
             waits_slots_reply(manager, pending_semaphore(pending), pending->slots,
                               pending->received_ns, ends_ns, now_ns),
             now_ns);
}

/* Reply to each waiter that only waited for the result of the last round. If this pass has no
 * budget left, the waits of LOCKs with WAIT end once more, in a later pass. One is always answered,
 * so that they cannot be put off for ever. */
static void answer_timed_out(struct lock_manager *manager, struct resource *resource,
                             int64_t hint_ms, int64_t now_ns)
{
    struct waiter *waiter;
    bool any = false;
    for (; (waiter = TAILQ_FIRST(&resource->queue.timed_out_waiters)) != NULL; any = true) {
        struct pending_request *pending = pending_of(waiter);
        if (manager_take_timer(manager) || !pending->waits || !any) {
            answer_waiter(manager, pending, hint_ms, now_ns);
        } else {
            queue_note_waiting(&resource->queue, waiter);
            timers_set(&manager->timers, &waiter->wait_deadline, now_ns);
        }
    }
}

static void answer_limit(struct lock_manager *manager, struct pending_request *pending,
                         const char *limit)
{
    const struct reply reply = {.outcome = OUTCOME_LIMIT, .limit = limit};
    waits_leave(manager, pending);
    manager_reply(manager, pending, ROUND_ACQUIRE, &reply);
}

/* No round has started for the request in time: the lock may be free, but the daemon is busy. */
static void answer_busy(struct lock_manager *manager, struct pending_request *pending,
                        int64_t now_ns)
{
    count_wait(manager, pending, now_ns);
    manager_note_busy(manager, pending, now_ns);
    answer_limit(manager, pending, "busy");
}

void waits_on_deadline(struct lock_manager *manager, struct pending_request *pending,
                       int64_t now_ns)
{
    struct resource *resource = pending_resource(pending);
    /* The round under way ends soon, and may still grant the lock to this waiter. */
    if (pending->slots > 0 && pending->flight != NULL) {
        pending->wait_over = pending->waits;
        return;
    }
    if (pending->slots == 0 && resource->queue.phase == QUEUE_ACQUIRING) {
        if (!pending->waiter.timed_out)
            queue_note_timed_out(&resource->queue, &pending->waiter);
        return;
    }
    renew_reasons(manager, resource, now_ns);
    bool tried = !pending->waits && pending->begun;
    if ((pending->awaits_start || !pending->waits) && !tried)
        answer_busy(manager, pending, now_ns);
    else if (pending->slots > 0)
        waits_answer_slots(manager, pending, TIMER_NEVER, now_ns);
    else
        answer_waiter(manager, pending, queue_hint_ms(&resource->queue, now_ns), now_ns);
    waits_run(manager, resource, now_ns);
}

/* --- rounds for the first waiter --- */

/* The queue wants a round: choose the LOCK that it runs for. A seeker without a LOCK to serve makes
 * way for the waiters after it. NULL: there is no LOCK. */
static struct pending_request *next_lock(struct resource *resource, int64_t now_ns)
{
    struct queue *queue = &resource->queue;
    struct waiter *first = TAILQ_FIRST(&queue->waiters);
    if (first->seeks && seeker_of(first)->serves == NULL && !seeker_serve(seeker_of(first))) {
        if (queue->length == 1)
            return NULL;
        seeker_requeue(seeker_of(first), now_ns);
    }
    return first_lock(resource);
}

/* May a round for this waiter start now? If not, the waiter joins the start queue. */
static bool may_start(struct lock_manager *manager, struct pending_request *pending, int64_t now_ns)
{
    bool next = manager->next_start == pending;
    if (pending->awaits_start)
        return false;
    manager->next_start = NULL;
    /* After an outbid round, a second one follows at once. */
    if (next || pending->outbid ||
        (manager->start_queue.length == 0 && flights_has_room(manager->flights)))
        return true;
    start_queue_join(&manager->start_queue, pending, now_ns);
    /* A deadline that is set already counts from an earlier time, and stays. */
    if (!pending->waits && !pending->waiter.wait_deadline.set)
        waits_set_start_deadline(manager, pending, now_ns);
    return false;
}

void waits_set_start_deadline(struct lock_manager *manager, struct pending_request *pending,
                              int64_t now_ns)
{
    timers_set(&manager->timers, &pending->waiter.wait_deadline,
               now_ns + manager->rules->round.node_timeout_ns);
}

/* Open an acquire round for the request, with a new token. NULL: *limit is the limit that prevents
 * it. */
static struct flight *open_acquire(struct lock_manager *manager, struct pending_request *pending,
                                   const char **limit)
{
    struct resource *resource = pending_resource(pending);
    int64_t ballot = 0;
    /* fence_always can be set while the request is in the queue. */
    bool fenced = pending->fenced || manager->rules->fence_always;
    if (fenced) {
        ballot = fence_propose(&manager->fence, manager->io->wall_us(manager->io->context),
                               pending->ballot_seen);
        *limit = "fence";
        if (ballot == 0)
            return NULL;
    }
    struct flight *flight =
        flights_open(manager->flights, &resource->key, ROUND_ACQUIRE, pending->ttl_ns);
    *limit = "operations";
    if (flight == NULL)
        return NULL;
    if (pending->awaits_start)
        start_queue_leave(&manager->start_queue, pending);
    pending_set_flight(pending, flight);
    flights_make_token(manager->flights, flight->token);
    flight->ballot = ballot;
    /* With SLOTS, other LOCKs may wait for this slot. */
    flight->key_probes =
        pending->waits || (pending->seeker != NULL && pending->seeker->semaphore->watched > 0);
    pending->begun = true;
    if (fenced)
        flight->vote_command = REDIS_ACQUIRE_FENCED;
    flight->round.may_bid_again = fenced && !pending->outbid;
    resource->acquire = flight;
    queue_on_acquiring(&resource->queue);
    manager->stats->acquire_rounds++;
    return flight;
}

static void start_acquire(struct lock_manager *manager, struct pending_request *pending,
                          int64_t now_ns)
{
    const char *limit;
    struct flight *flight = open_acquire(manager, pending, &limit);
    if (flight != NULL)
        flights_start(manager->flights, flight, now_ns);
    else
        answer_limit(manager, pending, limit);
}

/* Hand the lock over to the first waiter instead of releasing it. Returns false if that is not
 * possible. noinline: keeps this code out of releases of locks that no client waits for. */
__attribute__((noinline)) static bool hand_over(struct lock_manager *manager,
                                                struct flight *release, int64_t now_ns)
{
    struct resource *resource = resource_of(release->key);
    const char *limit;
    uint32_t nodes = flights_hand_over_nodes(manager->flights, &resource->key, now_ns);
    if (nodes_count(nodes) < manager->rules->round.quorum)
        return false;
    struct pending_request *next = next_lock(resource, now_ns);
    struct flight *acquire = next != NULL ? open_acquire(manager, next, &limit) : NULL;
    if (acquire == NULL)
        return false;
    flights_hand_over(manager->flights, release, acquire, nodes, now_ns);
    return true;
}

/* The round has granted the lock to the first waiter. Returns false if the reply reached no
 * client. */
static bool grant(struct lock_manager *manager, struct flight *flight, int64_t now_ns)
{
    struct resource *resource = resource_of(flight->key);
    struct pending_request *pending = flight->pending;
    struct engine_client *client = pending->client;
    bool hold = pending->hold;
    bool lingers = pending->lingers;
    bool handed_over = flight->vote_command == REDIS_SWAP;
    int64_t received_ns = pending->received_ns;
    count_wait(manager, pending, flight->round.started_ns);
    struct seeker *seeker = pending->seeker;
    waits_leave(manager, pending);
    if (seeker != NULL)
        seeker_requeue(seeker, now_ns);
    if (!manager_reply_round(manager, flight, now_ns)) {
        queue_on_outcome(&resource->queue, QUEUE_AGAIN, now_ns);
        return false;
    }
    manager->stats->handovers += handed_over;
    histogram_add(&manager->stats->granted, now_ns - received_ns);
    histogram_add(&manager->stats->granted_round, now_ns - flight->round.started_ns);
    queue_on_granted(&resource->queue, handed_over, now_ns + flight->round.ttl_ns, now_ns);
    resource->last_outcome = OUTCOME_HELD;
    grants_on_granted(manager, flight, client, hold, lingers, now_ns);
    if (resource->queue.timed_out > 0)
        answer_timed_out(manager, resource, queue_hint_ms(&resource->queue, now_ns), now_ns);
    return true;
}

/* The round has not granted the slot to this LOCK. If its wait is over, reply to it. Without WAIT,
 * it tries other slots only after a quorum has voted. */
static void stop_serving(struct lock_manager *manager, struct pending_request *pending,
                         const struct round *round, int64_t now_ns)
{
    if (pending->wait_over)
        waits_answer_slots(manager, pending, TIMER_NEVER, now_ns);
    else if (!pending->waits && round->outcome == OUTCOME_NOQUORUM)
        answer_waiter(manager, pending, -1, now_ns);
    else
        seeker_stop(&manager->semaphores, pending->seeker);
}

/* The round has not granted the lock. The request stays in the queue, unless it is answered
 * here. */
static void keep_waiting(struct lock_manager *manager, struct flight *flight, int64_t now_ns)
{
    const struct round *round = &flight->round;
    struct resource *resource = resource_of(flight->key);
    struct pending_request *pending = flight->pending;
    enum queue_outcome outcome = QUEUE_FAILED;
    pending_leave_flight(pending);
    pending->outbid = round->outcome == OUTCOME_OUTBID;
    if (round->outbid != 0 && round->ballot_seen > pending->ballot_seen)
        pending->ballot_seen = round->ballot_seen;
    if (pending->outbid) {
        /* A quorum of the masters would have accepted the token but has seen a greater ballot. Run
         * one more round at once, with a ballot above that one. Only one, because if a client is
         * outbid twice, another client competes with it. */
        manager->stats->outcomes[ROUND_ACQUIRE][OUTCOME_OUTBID]++;
        queue_on_outcome(&resource->queue, QUEUE_AGAIN, now_ns);
        return;
    }
    if (round->outcome == OUTCOME_LATE) {
        /* The TTL of this request is shorter than a round takes, and would be again in the next
         * round. Reply to it, so that the waiters after it need not wait for it. */
        queue_on_outcome(&resource->queue, QUEUE_AGAIN, now_ns);
        resource->last_outcome = OUTCOME_LATE;
        answer_waiter(manager, pending, -1, now_ns);
        /* For the waiters after it, the lock was held: the token of this LOCK was on the
         * masters. */
        resource->last_outcome = OUTCOME_HELD;
        answer_timed_out(manager, resource, -1, now_ns);
        return;
    }
    if (round->outcome == OUTCOME_HELD)
        outcome = round->outbid != 0 || round_is_split(round) || round_lacked_votes(round)
                      ? QUEUE_COLLIDED
                      : QUEUE_HELD;
    resource->last_outcome = round->outcome;
    memcpy(resource->last_reasons, round->reasons, sizeof(resource->last_reasons));
    queue_on_outcome(&resource->queue, outcome, now_ns);
    /* A LOCK that is not served by a seeker may be answered and freed by answer_timed_out(). */
    bool served = pending->seeker != NULL;
    answer_timed_out(manager, resource, round_hint_ms(round, now_ns), now_ns);
    if (served)
        stop_serving(manager, pending, round, now_ns);
}

bool waits_on_settled(struct lock_manager *manager, struct flight *flight, int64_t now_ns)
{
    struct resource *resource = resource_of(flight->key);
    assert(resource->acquire == flight);
    resource->acquire = NULL;
    if (flight->pending == NULL)
        queue_on_outcome(&resource->queue, QUEUE_AGAIN, now_ns);
    else if (flight->round.outcome == OUTCOME_OK)
        return grant(manager, flight, now_ns);
    else
        keep_waiting(manager, flight, now_ns);
    return true;
}

/* The shortest interval between far queries, for all locks together. 50 GETs per second cost next
 * to nothing. A lock that keeps far waiters from getting it is released often, or is one of few
 * locks, so it is found soon enough. */
#define FAR_QUERY_NS (20 * NS_PER_MS)

static bool is_waited_for(const struct resource *resource)
{
    const struct seeker *seeker = resource->seeker;
    if (seeker == NULL)
        return resource->queue.length > 0;
    return resource->queue.length > 1 || seeker->serves != NULL ||
           semaphore_next(seeker->semaphore) != NULL;
}

/* A lock is being released. If no client of this daemon waits for it, ask a master whether a far
 * waiter of another daemon wants it: at each release of a sought lock, and otherwise at most once
 * per FAR_QUERY_NS. */
static void seek_far_waiter(struct lock_manager *manager, struct resource *resource, int64_t now_ns)
{
    const struct queue *queue = &resource->queue;
    if (is_waited_for(resource) ||
        (queue->sought == 0 && now_ns - manager->far_query_ns < FAR_QUERY_NS))
        return;
    manager->far_query_ns = now_ns;
    write_far_query(manager->flights, &resource->key, now_ns);
}

void waits_release(struct lock_manager *manager, struct resource *resource, const char *token,
                   struct flight *flight, bool known, int64_t now_ns)
{
    struct flights *flights = manager->flights;
    flights_forbid_backfill(flights, &resource->key, token, now_ns);
    if (flight == NULL) {
        /* Until every release is confirmed, a master could still grant an extension to another
         * client with this token, and then delete the key that the client relies on. */
        extension_limits_end(&manager->extension_limits, token, now_ns);
        flight = flights_open(flights, &resource->key, ROUND_RELEASE, 0);
    }
    if (flight == NULL) {
        flights_defer_release(flights, &resource->key, token, nodes_all(flights->node_count),
                              now_ns);
        return;
    }
    memcpy(flight->token, token, LIMIT_TOKEN);
    if (known && !manager->draining && queue_may_hand_over(&resource->queue, now_ns) &&
        hand_over(manager, flight, now_ns))
        return;
    if (known)
        seek_far_waiter(manager, resource, now_ns);
    flights_start(flights, flight, now_ns);
}

/* --- key probes --- */

/*
 * The nodes that can be probed without delaying rounds. Nodes without a vote are left out. If the
 * key is free only on such nodes and not on a quorum of those that vote, the queue would run one
 * useless round after the other.
 */
static uint32_t reachable(const struct lock_manager *manager, int64_t now_ns)
{
    const struct flights *flights = manager->flights;
    uint32_t nodes = 0;
    for (unsigned i = 0; i < flights->node_count; i++)
        if (flights->masters[i].key_probes < LIMIT_LINK_KEY_PROBES &&
            master_refuses_vote(&flights->masters[i], now_ns) == REASON_NONE)
            nodes |= nodes_only(i);
    return nodes;
}

void waits_probe_key(struct lock_manager *manager, struct resource *resource, unsigned node,
                     enum redis_form form, int64_t now_ns)
{
    const char *token = resource->lock != NULL ? resource->lock->token : NULL;
    write_key_probe(manager->flights, node, &resource->key, token, form, now_ns);
}

void waits_watch(struct resource *resource, int64_t now_ns)
{
    /* The round under way may be for a client without WAIT, and its undo would not probe the key.
     * Let it probe the key. Otherwise the new waiter would learn of a release only from its next
     * key probe. */
    if (resource->acquire != NULL)
        resource->acquire->key_probes = true;
    /* This daemon has granted the lock to another of its clients and knows when it ends. If that
     * was just now, the masters need not be asked. Otherwise the lock may have been released
     * through another daemon since. A seeker does not ask at once: there can be a thousand slots,
     * and one that is released here serves its LOCK as well. */
    const struct lock *lock = resource->lock;
    if (resource->queue.length == 1 && lock != NULL)
        queue_on_held(&resource->queue, lock->ends_ns,
                      resource->seeker != NULL ? now_ns : lock->hold.since_ns);
}

/* --- the queue --- */

void waits_shut_down(struct lock_manager *manager, struct pending_request *pending)
{
    const struct reply reply = {.outcome = OUTCOME_SHUTDOWN};
    if (pending->flight == NULL) {
        waits_leave(manager, pending);
        manager_reply(manager, pending, ROUND_ACQUIRE, &reply);
        return;
    }
    timers_set(&manager->timers, &pending->waiter.wait_deadline, TIMER_NEVER);
    if (pending->slots > 0)
        pending->wait_over = true;
    else if (!pending->waiter.timed_out)
        queue_note_timed_out(&pending->resource->queue, &pending->waiter);
}

static void drain_queue(struct lock_manager *manager, struct resource *resource)
{
    struct waiter *waiter = TAILQ_FIRST(&resource->queue.waiters);
    while (waiter != NULL) {
        struct waiter *next = TAILQ_NEXT(waiter, entry);
        if (!waiter->seeks)
            waits_shut_down(manager, pending_of(waiter));
        waiter = next;
    }
}

/* A LOCK that a seeker serves has waited for its start, and the queue no longer wants a round: let
 * another seeker serve the LOCK. */
static void stop_idle_seeker(struct lock_manager *manager, struct seeker *seeker)
{
    const struct pending_request *served = seeker->serves;
    if (served != NULL && served->flight == NULL && !served->awaits_start)
        seeker_stop(&manager->semaphores, seeker);
}

/* The queue has waiters: do what it asks for. */
static void run_queue(struct lock_manager *manager, struct resource *resource, int64_t now_ns)
{
    struct queue *queue = &resource->queue;
    enum queue_want want;
    uint32_t nodes;
    if (manager->draining)
        drain_queue(manager, resource);
    if (resource->seeker != NULL)
        seeker_set_ready(resource->seeker, false);
    for (;;) {
        struct pending_request *next;
        /* Keys are probed only if a client waits whose wait is not over. */
        want = queue_next(queue, queue->length > queue->timed_out ? reachable(manager, now_ns) : 0,
                          now_ns, &nodes);
        if (want != QUEUE_ACQUIRE || queue_timer_rest_until_ns(manager, resource, now_ns) != 0)
            break;
        next = next_lock(resource, now_ns);
        if (next == NULL)
            seeker_set_ready(resource->seeker, true);
        if (next == NULL || !may_start(manager, next, now_ns))
            break;
        start_acquire(manager, next, now_ns);
    }
    if (resource->seeker != NULL)
        stop_idle_seeker(manager, resource->seeker);
    if (want == QUEUE_PROBE)
        for (unsigned i = 0; i < manager->flights->node_count; i++)
            if (nodes & nodes_only(i))
                waits_probe_key(manager, resource, i, REDIS_BY_SHA1, now_ns);
    queue_timer_set(manager, resource, first_lock(resource), now_ns);
}

void waits_run(struct lock_manager *manager, struct resource *resource, int64_t now_ns)
{
    if (resource->queue.length > 0)
        run_queue(manager, resource, now_ns);
    else if (resource->queue.sought > 0 || resource->kept)
        queue_timer_set(manager, resource, NULL, now_ns);
    else
        timers_set(&manager->timers, &resource->wake, TIMER_NEVER);
    /* The queue may have become empty above: the last waiter was refused a round, or was told that
     * the daemon stops. */
    if (resource->queue.length == 0)
        flight_note_idle(&manager->flights->idle_keys, &resource->key);
}

void waits_drain(struct lock_manager *manager, int64_t now_ns)
{
    struct resource *resource;
    TAILQ_FOREACH (resource, &manager->resources.all, of_all)
        waits_run(manager, resource, now_ns);
}
