#include "engine/engine_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/text.h"
#include "protocol/units.h"

/* --- making and unmaking --- */

static uint32_t draw_random(struct engine *engine)
{
    uint32_t random;
    engine->io.entropy(engine->io.context, &random, sizeof(random));
    return random;
}

/* Random bytes, fit for a token, as twice as many hex digits. */
static void draw_digits(struct engine *engine, size_t count, char *digits)
{
    /* In whole sixteens, as the compiler has them converted at once: twelve that nobody needs are
     * cheaper than the last four of a token one by one. */
    unsigned char bytes[32] = {0};
    char all[2 * sizeof(bytes)];
    assert(count <= sizeof(bytes));
    engine->io.entropy(engine->io.context, bytes, count);
    text_hex(bytes, sizeof(bytes), all);
    memcpy(digits, all, 2 * count);
}

static uint32_t random_for_wire(void *context)
{
    const struct engine_wire *wire = context;
    return draw_random(wire->engine);
}

static void open_wire(void *context, unsigned node)
{
    const struct engine_wire *wire = context;
    wire->engine->io.open(wire->engine->io.context, node, wire->channel);
}

static void close_wire(void *context, unsigned node)
{
    const struct engine_wire *wire = context;
    wire->engine->io.close(wire->engine->io.context, node, wire->channel);
}

static void write_wire(void *context, unsigned node, const char *bytes, size_t len)
{
    const struct engine_wire *wire = context;
    wire->engine->io.write(wire->engine->io.context, nodes_only(node), wire->channel, bytes, len);
}

static void heartbeat_for_link(void *context, unsigned node, int64_t now_ns)
{
    const struct engine_wire *wire = context;
    warden_heartbeat(&wire->engine->wardens[node], now_ns);
}

static void init_guard(struct engine *engine)
{
    struct guard_rules rules = {
        .node_count = engine->node_count,
        .quorum = engine->rules.round.quorum,
        .drift = engine->rules.round.drift,
        .max_ttl_ns = engine->rules.max_ttl_ns,
        .fence_ttl_ns = engine->rules.fence_ttl_ns,
        .cluster = engine->rules.cluster,
        .durable = engine->rules.durable,
        .bootstrap = engine->rules.bootstrap,
        .reset_set = engine->rules.reset_set,
        .looks_on = engine->rules.looks_on,
    };
    memcpy(rules.node_names, engine->rules.node_names, sizeof(rules.node_names));
    for (unsigned i = 0; i < engine->node_count; i++)
        rules.databases[i] = engine->rules.logins[i].database;
    guard_init(&engine->guard, &rules);
    for (unsigned i = 0; i < engine->node_count; i++) {
        engine->wardens[i] = (struct warden){
            .guard = &engine->guard,
            .link = &engine->links[i],
            .node = i,
            .clock_id = engine->rules.clock_id,
            .absent_key = engine->absent_key,
        };
        engine->vote_reason[i] = REASON_CONNECTING;
    }
}

static void init_connections(struct engine *engine, int64_t now_ns)
{
    const struct engine_rules *rules = &engine->rules;
    struct link_ticket *tickets = engine->ticket_memory;
    const struct link_rules link_rules = {
        .node_timeout_ns = rules->round.node_timeout_ns,
        .heartbeat_every_ns = engine->guard.heartbeat_ns,
        .max_ttl_ms = rules->max_ttl_ns / NS_PER_MS,
    };
    for (unsigned channel = 0; channel < CHANNELS; channel++)
        engine->wires[channel] = (struct engine_wire){engine, channel};
    engine->link_io = (struct link_io){
        .context = &engine->wires[CHANNEL_COMMANDS],
        .open = open_wire,
        .close = close_wire,
        .write = write_wire,
        .heartbeat = heartbeat_for_link,
        .random = random_for_wire,
    };
    engine->tracker_io = (struct tracker_io){
        .context = &engine->wires[CHANNEL_TRACKING],
        .open = open_wire,
        .close = close_wire,
        .write = write_wire,
        .random = random_for_wire,
    };
    for (unsigned i = 0; i < engine->node_count; i++) {
        link_init(&engine->links[i], i, &engine->link_io, &rules->logins[i], &link_rules,
                  tickets + i * LIMIT_LINK_COMMANDS,
                  engine->owed_memory + i * LIMIT_LINK_OWED_BYTES, now_ns);
        tracker_init(&engine->trackers[i], i, &engine->tracker_io, &rules->logins[i],
                     link_patience_ns(&engine->links[i]), now_ns);
    }
}

/* Rounds, requests, those that wait and locks each may be about a resource of its own. */
static bool init_tables(struct engine *engine)
{
    const struct engine_rules *rules = &engine->rules;
    size_t calls = LIMIT_OPERATIONS + rules->waiters;
    uint64_t seed;
    engine->io.entropy(engine->io.context, &seed, sizeof(seed));
    engine->queue_rules = (struct queue_rules){
        .node_count = engine->node_count,
        .quorum = rules->round.quorum,
        .shared_names = rules->shared_names,
        .backoff_min_ns = rules->backoff_min_ns,
        .backoff_max_ns = rules->backoff_max_ns,
    };
    alarms_init(&engine->alarms);
    return extensions_init(&engine->extensions, rules->max_extensions, rules->max_hold_ns) &&
           operations_init(&engine->operations) &&
           resources_init(&engine->resources, LIMIT_OPERATIONS + calls + LIMIT_LOCKS,
                          rules->key_prefix, rules->key_prefix_len, seed) &&
           pool_init(&engine->calls, sizeof(struct call), calls) && engine_locks_init(engine) &&
           engine_break_init(engine);
}

bool engine_init(struct engine *engine, const struct engine_rules *rules,
                 const struct engine_io *io, int64_t now_ns)
{
    memset(engine, 0, sizeof(*engine));
    engine->rules = *rules;
    engine->io = *io;
    engine->node_count = rules->round.node_count;
    init_guard(engine);
    engine->ticket_memory =
        calloc(engine->node_count, LIMIT_LINK_COMMANDS * sizeof(struct link_ticket));
    engine->owed_memory = calloc(engine->node_count, LIMIT_LINK_OWED_BYTES);
    if (!init_tables(engine) || engine->ticket_memory == NULL || engine->owed_memory == NULL ||
        !engine_links_init(engine)) {
        engine_deinit(engine);
        return false;
    }
    engine_releases_init(engine);
    init_connections(engine, now_ns);
    engine->queue_seed = draw_random(engine);
    draw_digits(engine, sizeof(engine->daemon) / 2, engine->daemon);
    engine_name_absent_key(engine);
    for (unsigned i = 0; i < engine->node_count; i++)
        memcpy(engine->wardens[i].daemon, engine->daemon, sizeof(engine->daemon));
    return true;
}

void engine_deinit(struct engine *engine)
{
    extensions_deinit(&engine->extensions);
    operations_deinit(&engine->operations);
    resources_deinit(&engine->resources);
    pool_deinit(&engine->calls);
    pool_deinit(&engine->locks);
    pool_deinit(&engine->breakings);
    free(engine->ticket_memory);
    free(engine->owed_memory);
    engine_links_deinit(engine);
}

void engine_client_init(struct engine_client *client, uint64_t id)
{
    memset(client, 0, sizeof(*client));
    LIST_INIT(&client->calls);
    LIST_INIT(&client->holds);
    client->id = id;
}

/* --- answering --- */

bool engine_reply(struct engine *engine, struct call *call, enum round_kind kind,
                  const struct reply *reply)
{
    engine->stats.outcomes[kind][reply->outcome]++;
    return engine_say(engine, call, reply);
}

bool engine_say(struct engine *engine, struct call *call, const struct reply *reply)
{
    struct engine_client *client = call->client;
    assert(call->operation == NULL);
    if (!client->gone)
        engine->io.reply(engine->io.context, client, call_tag(call), call->tag_len, reply);
    call_close(&engine->calls, call);
    return !client->gone;
}

/* How long the client has waited for it, as its own clock may have it. */
static int64_t elapsed_ms(const struct engine *engine, const struct operation *operation,
                          int64_t now_ns)
{
    return elapsed_for_client_ms(&engine->rules.round.drift, operation->call->received_ns, now_ns);
}

/* What belongs to any outcome but OK. Not inlined: it is rare, and the larger part of all that an
 * answer may have. */
__attribute__((noinline)) static void explain(const struct engine *engine,
                                              const struct operation *operation,
                                              struct reply *reply, int64_t now_ns)
{
    const struct round *round = &operation->round;
    switch (round->outcome) {
    case OUTCOME_LATE:
        reply->elapsed_ms = elapsed_ms(engine, operation, now_ns);
        break;
    case OUTCOME_HELD:
        reply->hint_ms = round_hint_ms(round, now_ns);
        break;
    case OUTCOME_NOQUORUM:
        reply->voting = round_voting(round);
        reply->quorum = round->rules->quorum;
        reply->node_count = engine->node_count;
        reply->node_names = engine->rules.node_names;
        reply->node_reasons = round->reasons;
        break;
    case OUTCOME_OK:
    case OUTCOME_GONE:
    case OUTCOME_FREE:
    case OUTCOME_LIMIT:
    case OUTCOME_SHUTDOWN:
    case OUTCOME_OUTBID:
        break;
    }
}

bool engine_answer(struct engine *engine, struct operation *operation, int64_t now_ns)
{
    const struct round *round = &operation->round;
    struct call *call = operation->call;
    struct reply reply = {.outcome = round->outcome};
    assert(round->phase == ROUND_SETTLED);
    if (round->outcome != OUTCOME_OK) {
        explain(engine, operation, &reply, now_ns);
    } else if (round->kind != ROUND_RELEASE) {
        reply.token = operation->token;
        reply.validity_ms = round_validity_ns(round, now_ns) / NS_PER_MS;
        reply.elapsed_ms = elapsed_ms(engine, operation, now_ns);
        reply.fence = round->kind == ROUND_ACQUIRE ? operation->ballot : -1;
    }
    operation->call = NULL;
    call->operation = NULL;
    return engine_reply(engine, call, round->kind, &reply);
}

/* --- doing what a round decided --- */

size_t engine_format(struct engine *engine, const struct operation *operation,
                     enum round_command command, enum redis_form form, int64_t now_ns)
{
    const struct round *round = &operation->round;
    struct redis_call call = {
        .command = operation_command(operation, command),
        .token = operation->token,
        .old_token = operation->predecessor,
        .ttl_ms = round->ttl_ns / NS_PER_MS,
        .ballot = operation->ballot,
        .fence_ttl_ms = engine->rules.fence_ttl_ns / NS_PER_MS,
    };
    call.key = operation->resource->key;
    call.key_len = operation->resource->key_len;
    if (command == ROUND_PLANT)
        call.ttl_ms = round_plant_ttl_ms(round, now_ns);
    else if (call.command == REDIS_RELEASE)
        call.ttl_ms = engine->rules.max_ttl_ns / NS_PER_MS;
    /* Who was refused the lock wants it; who releases it does not. */
    if (command == ROUND_UNDO || call.command == REDIS_SWAP)
        engine_sign(engine, &call);
    return redis_format(&call, form, engine->command);
}

void engine_owe(struct engine *engine, unsigned node, const struct operation *operation,
                int64_t now_ns)
{
    const struct resource *resource = operation->resource;
    engine->stats.owed++;
    link_owe(&engine->links[node], resource->key, resource->key_len, operation->token, now_ns);
}

/* While somebody waits, the undo of a round that was refused is also a look at the key. Not
 * inlined: a vote, which is written by the same function, is to pay nothing for it. */
__attribute__((noinline)) static uint32_t track_undo(struct engine *engine, unsigned node,
                                                     const struct queue *queue, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    uint32_t tracking = engine->trackers[node].tracking;
    if (queue->length == queue->overdue || tracking == 0 || link_refuses_vote(link) != REASON_NONE)
        return 0;
    tracker_ask(link, now_ns);
    return tracking;
}

/* Returns the nodes that do not take it. */
static uint32_t write_to(struct engine *engine, struct operation *operation,
                         enum round_command command, uint32_t nodes, int64_t now_ns)
{
    bool release = operation_is_release(operation, command);
    struct link_ticket ticket = {.kind = TICKET_ROUND,
                                 .command = (uint8_t)command,
                                 .form = REDIS_BY_SHA1,
                                 .plain = operation_command(operation, command) == REDIS_ACQUIRE,
                                 .sent_ns = now_ns,
                                 .owner = operation};
    uint32_t refused = 0;
    engine_settle_order(engine, operation->resource, now_ns);
    size_t len = engine_format(engine, operation, command, REDIS_BY_SHA1, now_ns);
    bool joined = false;
    if (ticket.plain)
        ticket.number = ++engine->plain_votes;
    for (uint32_t rest = nodes; rest != 0; rest = nodes_behind_first(rest)) {
        unsigned node = nodes_first(rest);
        struct link *link = &engine->links[node];
        if ((release ? link_refuses_release(link) : link_refuses_vote(link)) != REASON_NONE) {
            refused |= nodes_only(node);
            continue;
        }
        ticket.epoch = guard_epoch(&engine->guard, node);
        if (ticket.plain) {
            joined |= link_expect_vote(link, &ticket);
            continue;
        }
        if (command == ROUND_UNDO)
            ticket.tracking = track_undo(engine, node, &operation->resource->queue, now_ns);
        link_expect(link, &ticket);
    }
    /* It waits for an answer where its run is, so it is still there. */
    if (joined) {
        assert(engine->asked_last->together == NULL);
        engine->asked_last->together = operation;
    }
    if (ticket.plain)
        engine->asked_last = operation;
    engine->io.write(engine->io.context, nodes & ~refused, CHANNEL_COMMANDS, engine->command, len);
    engine_guard_votes(engine, operation, command, nodes & ~refused);
    return refused;
}

/* The links to these nodes do not take a command of it. Not inlined: it is rare, and with it every
 * command that is sent would save more registers and guard its stack. */
__attribute__((noinline)) static void on_refused(struct engine *engine, struct operation *operation,
                                                 enum round_command command, uint32_t refused,
                                                 int64_t now_ns)
{
    bool release = operation_is_release(operation, command);
    bool swap = operation_is_swap(operation, command);
    for (unsigned i = 0; i < engine->node_count && release; i++)
        if (refused & nodes_only(i))
            engine_owe(engine, i, operation, now_ns);
    /* Last, because it may finish the round: then it is gone. */
    for (unsigned i = 0; i < engine->node_count && refused != 0; i++) {
        if (!(refused & nodes_only(i)))
            continue;
        refused &= ~nodes_only(i);
        if (swap)
            engine_fail_swap(engine, i, operation, REASON_BACKLOG, now_ns);
        else
            engine_deliver(engine, i, operation, command,
                           &(struct answer){.kind = ANSWER_FAILED, .reason = REASON_BACKLOG},
                           now_ns);
    }
}

/* Write a command to the nodes a round named. It is the same for all, so it is formatted once. */
static void send(struct engine *engine, struct operation *operation, enum round_command command,
                 uint32_t nodes, int64_t now_ns)
{
    uint32_t refused;
    if (command == ROUND_PLANT)
        engine->stats.planted++;
    /* The acquire of a hand-over writes for both. */
    if (command == ROUND_VOTE && operation->asks_by != REDIS_SWAP)
        nodes &= ~operation->shared_on;
    if (engine_gathers(operation, command))
        refused = engine_gather(engine, operation, nodes, now_ns);
    else
        refused = write_to(engine, operation, command, nodes, now_ns);
    if (refused != 0)
        on_refused(engine, operation, command, refused, now_ns);
}

/* Who had no vote in it, and why. */
static void count_refusals(struct engine *engine, const struct round *round)
{
    if (round->kind == ROUND_RELEASE)
        return;
    for (uint32_t failed = round->failed; failed != 0; failed &= failed - 1) {
        unsigned node = (unsigned)__builtin_ctz(failed);
        engine->stats.refused[node][round->reasons[node]]++;
    }
}

/* What follows from the outcome of a round. False if it granted a lock, and nobody heard. *next:
 * the BREAK that goes on after it. */
static bool on_settled(struct engine *engine, struct operation *operation, struct breaking **next,
                       int64_t now_ns)
{
    const struct round *round = &operation->round;
    switch (round->kind) {
    case ROUND_ACQUIRE:
        return engine_on_asked(engine, operation, now_ns);
    case ROUND_EXTEND:
        engine_on_extended(engine, operation, now_ns);
        break;
    case ROUND_RELEASE:
        if (round->outcome != OUTCOME_OK) {
            engine_release_frozen(engine, operation, now_ns);
            break;
        }
        extensions_forget(&engine->extensions, operation->token);
        if (operation->shared_on == 0)
            queue_on_released(&operation->resource->queue, now_ns);
        break;
    case ROUND_STATUS:
    case ROUND_FREEZE:
        break;
    }
    if (operation->breaking != NULL)
        *next = engine_break_on_settled(engine, operation, now_ns);
    if (operation->call != NULL)
        engine_answer(engine, operation, now_ns);
    return true;
}

void engine_end(struct engine *engine, struct operation *operation)
{
    struct resource *resource = operation->resource;
    operation_free(&engine->operations, operation);
    resource_note_idle(&engine->resources, resource);
}

/* Its round may be over, and nothing of it is left to be done. */
static inline bool is_over(const struct operation *operation)
{
    return round_is_finished(&operation->round) && !operation->settled;
}

/* What a step asked for; the operation may be gone afterwards. */
static inline void do_asked(struct engine *engine, struct operation *operation,
                            const struct round_actions *actions, int64_t now_ns)
{
    if (actions->send_to != 0)
        send(engine, operation, actions->send, actions->send_to, now_ns);
    else if (is_over(operation))
        engine_end(engine, operation);
}

/* A step has settled the round. What follows from that is done by engine_finish(), and so is
 * the backfill of a lock that is granted: should nobody hear of it, it is undone instead. */
static void note_settled(struct engine *engine, struct operation *operation,
                         const struct round_actions *actions, int64_t now_ns)
{
    const struct round *round = &operation->round;
    bool granted =
        round->kind == ROUND_ACQUIRE && round->outcome == OUTCOME_OK && !round->cancelled;
    TAILQ_REMOVE(&engine->operations.waiting, operation, of_list);
    TAILQ_INSERT_TAIL(&engine->operations.settled, operation, of_list);
    operation->settled = true;
    count_refusals(engine, round);
    if (granted)
        operation->backfill = actions->send_to;
    else if (actions->send_to != 0)
        send(engine, operation, actions->send, actions->send_to, now_ns);
}

void engine_step(struct engine *engine, struct operation *operation,
                 const struct round_event *event)
{
    bool was_settled = operation->round.phase == ROUND_SETTLED;
    struct round_actions actions;
    round_step(&operation->round, event, &actions);
    if (!was_settled && operation->round.phase == ROUND_SETTLED)
        note_settled(engine, operation, &actions, event->now_ns);
    else
        do_asked(engine, operation, &actions, event->now_ns);
}

/* What followed from its outcome has been done. */
static void conclude(struct engine *engine, struct operation *operation, bool delivered,
                     int64_t now_ns)
{
    struct round_actions actions = {.send = ROUND_PLANT, .send_to = operation->backfill};
    operation->settled = false;
    if (!delivered)
        round_step(&operation->round,
                   &(struct round_event){.type = ROUND_EVENT_UNDELIVERED, .now_ns = now_ns},
                   &actions);
    do_asked(engine, operation, &actions, now_ns);
}

void engine_finish(struct engine *engine, int64_t now_ns)
{
    struct operation *operation;
    while ((operation = TAILQ_FIRST(&engine->operations.settled)) != NULL) {
        struct resource *resource = operation->resource;
        struct breaking *to_break = NULL;
        TAILQ_REMOVE(&engine->operations.settled, operation, of_list);
        bool delivered = on_settled(engine, operation, &to_break, now_ns);
        conclude(engine, operation, delivered, now_ns);
        /* After the undo, so that the nodes are free for the next in the queue. */
        engine_run_queue(engine, resource, now_ns);
        if (to_break != NULL)
            engine_break_go_on(engine, resource, to_break, now_ns);
    }
    resources_sweep(&engine->resources);
}

/* --- rounds, and what is released --- */

void engine_make_token(struct engine *engine, char *token)
{
    draw_digits(engine, LIMIT_TOKEN_BYTES, token);
}

/* An extension that starts while its token is being released must not plant it, either. */
static bool being_released(const struct operation *operation)
{
    const struct operation *other;
    LIST_FOREACH (other, &operation->resource->operations, of_resource)
        if (other->round.kind == ROUND_RELEASE &&
            memcmp(other->token, operation->token, LIMIT_TOKEN) == 0)
            return true;
    return false;
}

/* Which nodes may be asked to release, and why not the others: they are owed it. */
static void survey_links(struct engine *engine, struct operation *operation,
                         struct round_event *event, enum reason *reasons)
{
    uint32_t reachable = 0;
    for (unsigned i = 0; i < engine->node_count; i++) {
        reasons[i] = engine_break_spares(operation, i);
        if (reasons[i] != REASON_NONE)
            continue;
        reasons[i] = link_refuses_release(&engine->links[i]);
        if (reasons[i] == REASON_NONE)
            reachable |= nodes_only(i);
        else
            engine_owe(engine, i, operation, event->now_ns);
    }
    event->reachable = reachable;
}

/* Which nodes may be asked for their vote, and why not the others; and which of those carry locks.
 */
static void survey_votes(struct engine *engine, struct round_event *event, enum reason *reasons)
{
    int64_t now_ns = event->now_ns;
    bool all_vote = guard_all_vote(&engine->guard, now_ns);
    uint32_t reachable = 0;
    for (unsigned i = 0; i < engine->node_count; i++) {
        enum reason reason = link_refuses_vote(&engine->links[i]);
        bool linked = reason == REASON_NONE;
        if (linked && !all_vote)
            reason = guard_refuses_vote(&engine->guard, i, now_ns);
        if (reason == REASON_NONE) {
            reachable |= nodes_only(i);
            continue;
        }
        reasons[i] = reason;
        if (linked && guard_carries(&engine->guard, i, now_ns))
            event->carrying |= nodes_only(i);
    }
    event->reachable = reachable;
}

void engine_start(struct engine *engine, struct operation *operation, int64_t now_ns)
{
    enum reason reasons[LIMIT_NODES];
    struct round_event event = {
        .type = ROUND_EVENT_START,
        .now_ns = now_ns,
        .unreachable_because = reasons,
    };
    if (operation->round.kind == ROUND_EXTEND && being_released(operation))
        operation->round.token_releasing = true;
    if (operation->round.kind == ROUND_RELEASE)
        survey_links(engine, operation, &event, reasons);
    else
        survey_votes(engine, &event, reasons);
    /* Nothing has happened since the two were told. */
    assert((operation->shared_on & ~event.reachable) == 0);
    engine_step(engine, operation, &event);
}

/* There is no room for a round: each node is owed the release. Until that has gone out an
 * extension could still be granted, and the lock then be deleted under who has it. */
static void owe_everywhere(struct engine *engine, const struct resource *resource,
                           const char *token, int64_t now_ns)
{
    extensions_end(&engine->extensions, token, now_ns);
    for (unsigned i = 0; i < engine->node_count; i++)
        link_owe(&engine->links[i], resource->key, resource->key_len, token, now_ns);
}

void engine_release(struct engine *engine, struct resource *resource, const char *token,
                    struct operation *operation, bool known, int64_t now_ns)
{
    engine_forbid_planting(engine, resource, token, now_ns);
    if (operation == NULL)
        operation =
            operation_open(&engine->operations, resource, &engine->rules.round, ROUND_RELEASE, 0);
    if (operation != NULL)
        memcpy(operation->token, token, LIMIT_TOKEN);
    if (operation == NULL)
        owe_everywhere(engine, resource, token, now_ns);
    else if (!known || !engine_hand_over(engine, operation, now_ns))
        engine_start(engine, operation, now_ns);
}

/* --- time --- */

void engine_catch_up(struct engine *engine, int64_t now_ns)
{
    struct alarm *alarm;
    if (engine->alarms.first_ns > now_ns)
        return;
    while ((alarm = alarms_take(&engine->alarms, now_ns)) != NULL)
        switch ((enum engine_alarm)alarm->kind) {
        case ALARM_WALL:
            engine_on_wall(engine,
                           (struct call *)((char *)alarm - offsetof(struct call, waiter.wall)),
                           now_ns);
            break;
        case ALARM_WAKE:
            engine_run_queue(engine,
                             (struct resource *)((char *)alarm - offsetof(struct resource, wake)),
                             now_ns);
            break;
        case ALARM_LOCK:
            engine_on_lock_alarm(
                engine, (struct lock *)((char *)alarm - offsetof(struct lock, alarm)), now_ns);
            break;
        }
    engine_finish(engine, now_ns);
}

int64_t engine_deadline_ns(const struct engine *engine)
{
    const struct operation *first = TAILQ_FIRST(&engine->operations.waiting);
    int64_t deadline_ns = engine->alarms.first_ns;
    if (first != NULL && round_deadline_ns(&first->round) < deadline_ns)
        deadline_ns = round_deadline_ns(&first->round);
    for (unsigned i = 0; i < engine->node_count; i++) {
        int64_t link_ns = link_deadline_ns(&engine->links[i]);
        int64_t tracker_ns = tracker_deadline_ns(&engine->trackers[i]);
        deadline_ns = link_ns < deadline_ns ? link_ns : deadline_ns;
        deadline_ns = tracker_ns < deadline_ns ? tracker_ns : deadline_ns;
    }
    return deadline_ns;
}

void engine_on_timer(struct engine *engine, int64_t now_ns)
{
    struct operation *first;
    engine_catch_up(engine, now_ns);
    while ((first = TAILQ_FIRST(&engine->operations.waiting)) != NULL &&
           round_deadline_ns(&first->round) <= now_ns)
        engine_step(engine, first,
                    &(struct round_event){.type = ROUND_EVENT_DEADLINE, .now_ns = now_ns});
    engine_links_on_timer(engine, now_ns);
    engine_finish(engine, now_ns);
}

/* --- the end --- */

void engine_drain(struct engine *engine, int64_t now_ns)
{
    engine->draining = true;
    engine_lose_holds(engine);
    engine_drain_queues(engine, now_ns);
    engine_finish(engine, now_ns);
}

void engine_abandon(struct engine *engine, int64_t now_ns)
{
    const struct reply reply = {.outcome = OUTCOME_SHUTDOWN};
    struct operation *operation;
    while ((operation = TAILQ_FIRST(&engine->operations.waiting)) != NULL) {
        struct call *call = operation->call;
        operation->call = NULL;
        if (call != NULL) {
            call->operation = NULL;
            if (call->resource != NULL)
                engine_leave_line(engine, call);
            if (operation->breaking != NULL)
                engine_say(engine, call, &reply);
            else
                engine_reply(engine, call, operation->round.kind, &reply);
        }
        engine_step(engine, operation,
                    &(struct round_event){.type = ROUND_EVENT_CANCEL, .now_ns = now_ns});
    }
    engine_finish(engine, now_ns);
}

bool engine_busy(const struct engine *engine)
{
    bool busy = !TAILQ_EMPTY(&engine->operations.waiting);
    for (unsigned i = 0; i < engine->node_count; i++)
        busy = busy || link_busy(&engine->links[i]);
    return busy;
}
