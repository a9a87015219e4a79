#include <assert.h>
#include <string.h>

#include "engine/engine_parts.h"
#include "engine/round/node_set.h"
#include "protocol/units.h"

static struct call *call_of(struct waiter *waiter)
{
    return (struct call *)((char *)waiter - offsetof(struct call, waiter));
}

static struct call *first_in_line(const struct resource *resource)
{
    struct waiter *first = TAILQ_FIRST(&resource->queue.line);
    return first != NULL ? call_of(first) : NULL;
}

unsigned engine_place(const struct resource *resource, const struct engine_client *client)
{
    struct waiter *waiter;
    unsigned place = 0;
    /* Who only looks on, and has nothing under way, need not be looked for. */
    if (LIST_EMPTY(&client->calls))
        return 0;
    TAILQ_FOREACH (waiter, &resource->queue.line, line) {
        place++;
        if (call_of(waiter)->client == client)
            return place;
    }
    return 0;
}

/* --- answers --- */

/* So many LOCKs with WAIT are in its queue now. Those without come and go with each request. */
static void note_waits(struct engine *engine, struct resource *resource, unsigned waits)
{
    bool were = resource->waits > 0;
    resource->waits = waits;
    if (were == (waits > 0))
        return;
    if (were)
        LIST_REMOVE(resource, waited_for);
    else
        LIST_INSERT_HEAD(&engine->waited_for, resource, waited_for);
    engine->waited_for_count = were ? engine->waited_for_count - 1 : engine->waited_for_count + 1;
}

void engine_leave_line(struct engine *engine, struct call *call)
{
    queue_leave(&call->resource->queue, &call->waiter);
    if (call->waits) {
        engine->waiting--;
        note_waits(engine, call->resource, call->resource->waits - 1);
        alarms_set(&engine->alarms, &call->waiter.wall, ALARM_NEVER);
    }
    if (call->hold)
        engine->holding--;
}

/* What the last round for this resource has come to, for one who came at received_ns. */
static struct reply last_reply(const struct engine *engine, const struct resource *resource,
                               int64_t hint_ms, int64_t received_ns, int64_t now_ns)
{
    struct reply reply = {
        .outcome = resource->last_outcome,
        .elapsed_ms = elapsed_for_client_ms(&engine->rules.round.drift, received_ns, now_ns),
        .hint_ms = hint_ms,
        .quorum = engine->rules.round.quorum,
        .node_count = engine->node_count,
        .node_names = engine->rules.node_names,
        .node_reasons = resource->last_reasons,
    };
    for (unsigned i = 0; i < engine->node_count && reply.outcome == OUTCOME_NOQUORUM; i++)
        reply.voting += resource->last_reasons[i] == REASON_NONE;
    return reply;
}

/* It has stood in line until then. */
static void count_wait(struct engine *engine, const struct call *call, int64_t until_ns)
{
    if (call->waits)
        histogram_add(&engine->stats.queued, until_ns - call->received_ns);
}

/* Its wait is over, with this; or has to be, because the daemon stops. */
static void answer_waiter(struct engine *engine, struct call *call, enum outcome outcome,
                          int64_t hint_ms, int64_t now_ns)
{
    struct reply reply = last_reply(engine, call->resource, hint_ms, call->received_ns, now_ns);
    reply.outcome = engine->draining && call->waits ? OUTCOME_SHUTDOWN : outcome;
    count_wait(engine, call, now_ns);
    engine_leave_line(engine, call);
    engine_reply(engine, call, ROUND_ACQUIRE, &reply);
}

static void answer_overdue(struct engine *engine, struct resource *resource, int64_t hint_ms,
                           int64_t now_ns)
{
    struct waiter *waiter = TAILQ_FIRST(&resource->queue.line);
    while (resource->queue.overdue > 0) {
        struct waiter *next = TAILQ_NEXT(waiter, line);
        if (waiter->overdue)
            answer_waiter(engine, call_of(waiter), resource->last_outcome, hint_ms, now_ns);
        waiter = next;
    }
}

static void answer_limit(struct engine *engine, struct call *call, const char *limit)
{
    const struct reply reply = {.outcome = OUTCOME_LIMIT, .limit = limit};
    engine_leave_line(engine, call);
    engine_reply(engine, call, ROUND_ACQUIRE, &reply);
}

void engine_on_wall(struct engine *engine, struct call *call, int64_t now_ns)
{
    struct resource *resource = call->resource;
    /* The round that is under way ends soon, and may yet be for it. */
    if (resource->queue.phase == QUEUE_ASKING) {
        queue_note_overdue(&resource->queue, &call->waiter);
        return;
    }
    answer_waiter(engine, call, resource->last_outcome, queue_hint_ms(&resource->queue, now_ns),
                  now_ns);
    engine_run_queue(engine, resource, now_ns);
}

/* --- rounds for the first in line --- */

/* A round for it, with a token of its own. NULL: *limit says what bound is met. */
static struct operation *open_acquire(struct engine *engine, struct call *call, const char **limit)
{
    struct resource *resource = call->resource;
    int64_t ballot = 0;
    /* Whoever stood in line when the rule came gets one, too. */
    bool fenced = call->fenced || engine->rules.fence_always;
    if (fenced) {
        ballot = fence_propose(&engine->fence, engine->io.wall_us(engine->io.context),
                               call->ballot_seen);
        *limit = "fence";
        if (ballot == 0)
            return NULL;
    }
    struct operation *operation = operation_open(&engine->operations, resource,
                                                 &engine->rules.round, ROUND_ACQUIRE, call->ttl_ns);
    *limit = "operations";
    if (operation == NULL)
        return NULL;
    operation_set_call(operation, call);
    engine_make_token(engine, operation->token);
    operation->ballot = ballot;
    if (fenced)
        operation->asks_by = REDIS_ACQUIRE_FENCED;
    operation->round.may_bid_again = fenced && !call->outbid;
    resource->asking = operation;
    queue_on_asked(&resource->queue);
    engine->stats.asked++;
    return operation;
}

static void ask(struct engine *engine, struct resource *resource, int64_t now_ns)
{
    struct call *call = first_in_line(resource);
    const char *limit;
    struct operation *operation = open_acquire(engine, call, &limit);
    if (operation != NULL)
        engine_start(engine, operation, now_ns);
    else
        answer_limit(engine, call, limit);
}

/* Not inlined: where nobody waits, a release is to pay nothing for it. */
__attribute__((noinline)) static bool hand_over(struct engine *engine, struct operation *release,
                                                int64_t now_ns)
{
    struct resource *resource = release->resource;
    uint32_t voters = 0;
    const char *limit;
    /* What is gathered with a release of the same key goes first. Now, since it may be so much that
     * a link takes no more votes. */
    engine_settle_order(engine, resource, now_ns);
    for (unsigned i = 0; i < engine->node_count; i++)
        if (engine_refuses_vote(engine, i, now_ns) == REASON_NONE &&
            link_refuses_release(&engine->links[i]) == REASON_NONE)
            voters |= nodes_only(i);
    if (nodes_count(voters) < engine->rules.round.quorum)
        return false;
    struct operation *acquire = open_acquire(engine, first_in_line(resource), &limit);
    if (acquire == NULL)
        return false;
    acquire->asks_by = REDIS_SWAP;
    memcpy(acquire->predecessor, release->token, LIMIT_TOKEN);
    acquire->partner = release;
    release->partner = acquire;
    acquire->shared_on = release->shared_on = voters;
    engine_start(engine, release, now_ns);
    engine_start(engine, acquire, now_ns);
    return true;
}

bool engine_hand_over(struct engine *engine, struct operation *release, int64_t now_ns)
{
    return !engine->draining && queue_may_hand_over(&release->resource->queue, now_ns) &&
           hand_over(engine, release, now_ns);
}

static bool grant(struct engine *engine, struct operation *operation, int64_t now_ns)
{
    struct resource *resource = operation->resource;
    struct call *call = operation->call;
    struct engine_client *client = call->client;
    bool hold = call->hold;
    bool lingers = call->lingers;
    bool handed_over = operation->asks_by == REDIS_SWAP;
    int64_t received_ns = call->received_ns;
    count_wait(engine, call, operation->round.started_ns);
    engine_leave_line(engine, call);
    if (!engine_answer(engine, operation, now_ns)) {
        queue_on_outcome(&resource->queue, QUEUE_AGAIN, now_ns);
        return false;
    }
    engine->stats.handovers += handed_over;
    histogram_add(&engine->stats.granted, now_ns - received_ns);
    histogram_add(&engine->stats.granted_round, now_ns - operation->round.started_ns);
    queue_on_granted(&resource->queue, handed_over, now_ns + operation->round.ttl_ns, now_ns);
    resource->last_outcome = OUTCOME_HELD;
    engine_on_granted(engine, operation, client, hold, lingers, now_ns);
    if (resource->queue.overdue > 0)
        answer_overdue(engine, resource, queue_hint_ms(&resource->queue, now_ns), now_ns);
    return true;
}

/* It was not granted: who waits, waits on. */
static void go_on_waiting(struct engine *engine, struct operation *operation, int64_t now_ns)
{
    const struct round *round = &operation->round;
    struct resource *resource = operation->resource;
    struct call *call = operation->call;
    enum queue_outcome outcome = QUEUE_FAILED;
    operation->call = NULL;
    call->operation = NULL;
    call->outbid = round->outcome == OUTCOME_OUTBID;
    if (round->outbid != 0 && round->ballot_seen > call->ballot_seen)
        call->ballot_seen = round->ballot_seen;
    if (call->outbid) {
        /* A quorum was free, but has seen a greater ballot: once more, at once, above it. Only
         * once: who is outbid again has a rival. */
        engine->stats.outcomes[ROUND_ACQUIRE][OUTCOME_OUTBID]++;
        queue_on_outcome(&resource->queue, QUEUE_AGAIN, now_ns);
        return;
    }
    if (round->outcome == OUTCOME_LATE) {
        /* Its own time to live is too short for how long a round takes, and will be the next time.
         * It is answered, so that it keeps nobody behind it waiting. */
        queue_on_outcome(&resource->queue, QUEUE_AGAIN, now_ns);
        answer_waiter(engine, call, OUTCOME_LATE, -1, now_ns);
        /* For the others its token was there, as that of anybody who holds it. */
        resource->last_outcome = OUTCOME_HELD;
        answer_overdue(engine, resource, -1, now_ns);
        return;
    }
    if (round->outcome == OUTCOME_HELD)
        outcome = round->outbid != 0 || round_is_split(round) || round_lacked_votes(round)
                      ? QUEUE_COLLIDED
                      : QUEUE_HELD;
    resource->last_outcome = round->outcome;
    memcpy(resource->last_reasons, round->reasons, sizeof(resource->last_reasons));
    queue_on_outcome(&resource->queue, outcome, now_ns);
    answer_overdue(engine, resource, round_hint_ms(round, now_ns), now_ns);
}

bool engine_on_asked(struct engine *engine, struct operation *operation, int64_t now_ns)
{
    struct resource *resource = operation->resource;
    assert(resource->asking == operation);
    resource->asking = NULL;
    if (operation->call == NULL)
        queue_on_outcome(&resource->queue, QUEUE_AGAIN, now_ns);
    else if (operation->round.outcome == OUTCOME_OK)
        return grant(engine, operation, now_ns);
    else
        go_on_waiting(engine, operation, now_ns);
    return true;
}

/* --- looks --- */

/* The nodes that can be looked at without keeping rounds waiting. One without a vote may have the
 * key free while a quorum of the others has it not: a round for that would be in vain, over and
 * over. */
static uint32_t reachable(const struct engine *engine, int64_t now_ns)
{
    uint32_t nodes = 0;
    for (unsigned i = 0; i < engine->node_count; i++)
        if (engine->looking[i] < LIMIT_LINK_LOOKS &&
            engine_refuses_vote(engine, i, now_ns) == REASON_NONE)
            nodes |= nodes_only(i);
    return nodes;
}

/* By the distance to the nearest quorum. */
static int64_t need_ms(const struct engine *engine)
{
    int64_t sorted_ns[LIMIT_NODES];
    unsigned count = 0;
    for (unsigned i = 0; i < engine->node_count; i++) {
        int64_t distance_ns = engine->links[i].distance_ns;
        unsigned at = count;
        if (distance_ns < 0)
            continue;
        for (; at > 0 && sorted_ns[at - 1] > distance_ns; at--)
            sorted_ns[at] = sorted_ns[at - 1];
        sorted_ns[at] = distance_ns;
        count++;
    }
    if (count < engine->rules.round.quorum)
        return 0;
    int64_t need_ns =
        queue_need_ns(&engine->queue_rules, sorted_ns[engine->rules.round.quorum - 1]);
    int64_t rounded_ms = (need_ns + NS_PER_MS - 1) / NS_PER_MS;
    return rounded_ms < REDIS_NEED_MAX_MS ? rounded_ms : REDIS_NEED_MAX_MS;
}

/* Not inlined: a vote, which is formatted by the same function, is to pay nothing for it. */
__attribute__((noinline)) void engine_sign(const struct engine *engine, struct redis_call *call)
{
    call->daemon = engine->daemon;
    if (call->command != REDIS_SWAP)
        call->need_ms = need_ms(engine);
}

static void look(struct engine *engine, struct resource *resource, unsigned node,
                 enum redis_form form, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    /* Where another daemon hands it over, it finds that we wait. */
    struct redis_call call = {
        .command = REDIS_LOOK,
        .key = resource->key,
        .key_len = resource->key_len,
        .token = resource->lock != NULL ? resource->lock->token : NULL,
        .ttl_ms = engine->rules.max_ttl_ns / NS_PER_MS,
    };
    engine_sign(engine, &call);
    const struct link_ticket ticket = {.kind = TICKET_LOOK,
                                       .form = (uint8_t)form,
                                       .sent_ns = now_ns,
                                       .tracking = engine->trackers[node].tracking,
                                       .owner = resource};
    engine->stats.looks++;
    engine->looking[node]++;
    resource->looks++;
    engine_settle_order(engine, resource, now_ns);
    if (ticket.tracking != 0)
        tracker_ask(link, now_ns);
    size_t len = redis_format(&call, form, engine->command);
    link_send(link, engine->command, len, &ticket);
}

void engine_on_seen(struct engine *engine, unsigned node, struct queue *queue,
                    const struct answer *answer, const struct link_ticket *ticket, int64_t now_ns)
{
    const struct sighting seen = {
        .held = answer->kind == ANSWER_HELD,
        .pttl_ms = answer->kind == ANSWER_HELD ? answer->pttl_ms : -1,
        .holder = answer->holder,
        .tracked = ticket->tracking != 0 && ticket->tracking == engine->trackers[node].tracking,
    };
    queue_on_seen(queue, node, &seen, now_ns);
}

void engine_on_look(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                    const struct redis_reply *reply, int64_t now_ns)
{
    struct resource *resource = ticket->owner;
    struct answer answer = redis_answer(REDIS_LOOK, reply);
    engine->looking[node]--;
    if (answer.kind != ANSWER_FAILED)
        engine_on_seen(engine, node, &resource->queue, &answer, ticket, now_ns);
    else if (answer.reason == REASON_NOSCRIPT && ticket->form == REDIS_BY_SHA1 &&
             link_refuses_vote(&engine->links[node]) == REASON_NONE)
        look(engine, resource, node, REDIS_IN_FULL, now_ns);
    else
        queue_on_unseen(&resource->queue, node);
    resource->looks--;
    engine_run_queue(engine, resource, now_ns);
}

void engine_on_look_lost(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                         int64_t now_ns)
{
    struct resource *resource = ticket->owner;
    engine->looking[node]--;
    resource->looks--;
    queue_on_unseen(&resource->queue, node);
    engine_run_queue(engine, resource, now_ns);
}

/* Each queue in which somebody waits: the node is to be looked at, or tells of no more changes. */
static void tell_queues(struct engine *engine, unsigned node, bool changed, int64_t now_ns)
{
    struct resource *resource = resource_first(&engine->resources);
    while (resource != NULL) {
        if (resource->queue.length > 0) {
            if (changed)
                queue_on_changed(&resource->queue, node);
            else
                queue_on_untracked(&resource->queue, node, now_ns);
            engine_run_queue(engine, resource, now_ns);
        }
        struct resource *next = resource_next(resource);
        resource = next;
    }
}

void engine_on_tracked(struct engine *engine, unsigned node, int64_t now_ns)
{
    tell_queues(engine, node, true, now_ns);
}

void engine_on_vote(struct engine *engine, unsigned node, int64_t now_ns)
{
    tell_queues(engine, node, true, now_ns);
}

void engine_on_untracked(struct engine *engine, unsigned node, int64_t now_ns)
{
    tell_queues(engine, node, false, now_ns);
}

void engine_on_changed(struct engine *engine, unsigned node, const char *key, size_t key_len,
                       int64_t now_ns)
{
    struct resource *resource = resource_find_key(&engine->resources, key, key_len);
    if (resource == NULL || resource->queue.length == 0)
        return;
    queue_on_changed(&resource->queue, node);
    engine_run_queue(engine, resource, now_ns);
}

/* --- the queue --- */

/* All but the one that is being asked for: that one hears what comes of it. */
static void drain_line(struct engine *engine, struct resource *resource)
{
    const struct reply reply = {.outcome = OUTCOME_SHUTDOWN};
    struct waiter *waiter = TAILQ_FIRST(&resource->queue.line);
    while (waiter != NULL) {
        struct call *call = call_of(waiter);
        waiter = TAILQ_NEXT(waiter, line);
        if (call->operation != NULL) {
            alarms_set(&engine->alarms, &call->waiter.wall, ALARM_NEVER);
            if (!call->waiter.overdue)
                queue_note_overdue(&resource->queue, &call->waiter);
            continue;
        }
        engine_leave_line(engine, call);
        engine_reply(engine, call, ROUND_ACQUIRE, &reply);
    }
}

/* Somebody stands in line: do what the queue wants done. */
static void run_line(struct engine *engine, struct resource *resource, int64_t now_ns)
{
    struct queue *queue = &resource->queue;
    enum queue_want want = QUEUE_ASK;
    uint32_t nodes;
    if (engine->draining)
        drain_line(engine, resource);
    while (want == QUEUE_ASK) {
        /* Only for those who wait is a key looked at. */
        want = queue_next(queue, queue->length > queue->overdue ? reachable(engine, now_ns) : 0,
                          now_ns, &nodes);
        if (want == QUEUE_ASK)
            ask(engine, resource, now_ns);
    }
    if (want == QUEUE_LOOK)
        for (unsigned i = 0; i < engine->node_count; i++)
            if (nodes & nodes_only(i))
                look(engine, resource, i, REDIS_BY_SHA1, now_ns);
    resource->wake.kind = ALARM_WAKE;
    alarms_set(&engine->alarms, &resource->wake, queue_wake_ns(queue));
}

void engine_run_queue(struct engine *engine, struct resource *resource, int64_t now_ns)
{
    if (resource->queue.length > 0) {
        run_line(engine, resource, now_ns);
        return;
    }
    alarms_set(&engine->alarms, &resource->wake, ALARM_NEVER);
    resource_note_idle(&engine->resources, resource);
}

void engine_drain_queues(struct engine *engine, int64_t now_ns)
{
    struct resource *resource = resource_first(&engine->resources);
    while (resource != NULL) {
        engine_run_queue(engine, resource, now_ns);
        struct resource *next = resource_next(resource);
        resource = next;
    }
}

/* --- LOCK --- */

static void refuse(struct engine *engine, struct engine_client *client,
                   const struct request *request, const struct reply *reply)
{
    engine->stats.outcomes[ROUND_ACQUIRE][reply->outcome]++;
    engine->io.reply(engine->io.context, client, request->tag, request->tag_len, reply);
}

/* The bound that this LOCK meets, if any. */
static const char *bound_met(const struct engine *engine, const struct request *request,
                             const struct resource *resource)
{
    if (request->hold && engine->holding >= LIMIT_HOLDS)
        return "holds";
    if (request->wait_ms == 0)
        return NULL;
    if (resource->waits >= engine->rules.waiters_per_resource)
        return "waiters_per_resource";
    return engine->waiting >= engine->rules.waiters ? "waiters" : NULL;
}

/* Others are before it, and it will not wait. */
static bool hears_at_once(const struct resource *resource, const struct request *request)
{
    const struct queue *queue = &resource->queue;
    return request->wait_ms == 0 && queue->length > 0 && queue->phase != QUEUE_ASKING;
}

static void join(struct engine *engine, struct call *call, const struct request *request,
                 int64_t now_ns)
{
    struct resource *resource = call->resource;
    struct queue *queue = &resource->queue;
    bool first = queue->length == 0;
    if (first)
        resource->last_outcome = OUTCOME_HELD;
    queue_join(queue, &call->waiter, now_ns);
    engine->holding += call->hold;
    call->waiter.wall = (struct alarm){.kind = ALARM_WALL};
    if (!call->waits) {
        queue_note_overdue(queue, &call->waiter);
        return;
    }
    engine->waiting++;
    note_waits(engine, resource, resource->waits + 1);
    alarms_set(&engine->alarms, &call->waiter.wall, now_ns + request->wait_ms * NS_PER_MS);
    /* This daemon granted it to another of its clients: no need to ask. */
    if (first && resource->lock != NULL)
        queue_on_held(queue, resource->lock->ends_ns, now_ns);
}

void engine_lock(struct engine *engine, struct engine_client *client, const struct request *request,
                 struct resource *resource, int64_t now_ns)
{
    if (hears_at_once(resource, request)) {
        const struct reply reply =
            last_reply(engine, resource, queue_hint_ms(&resource->queue, now_ns), now_ns, now_ns);
        refuse(engine, client, request, &reply);
        return;
    }
    const char *limit = bound_met(engine, request, resource);
    if (limit != NULL) {
        refuse(engine, client, request, &(struct reply){.outcome = OUTCOME_LIMIT, .limit = limit});
        return;
    }
    struct call *call = call_open(&engine->calls, client, request, now_ns);
    if (call == NULL) {
        refuse(engine, client, request,
               &(struct reply){.outcome = OUTCOME_LIMIT, .limit = "operations"});
        return;
    }
    call->resource = resource;
    call->ttl_ns = request->ttl_ms * NS_PER_MS;
    call->waits = request->wait_ms > 0;
    call->fenced = request->fence || engine->rules.fence_always;
    call->hold = request->hold;
    call->lingers = request->linger;
    join(engine, call, request, now_ns);
    engine_run_queue(engine, resource, now_ns);
}
