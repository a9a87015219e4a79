#include "server/engine_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- making and unmaking --- */

static uint32_t random_for_link(void *context)
{
    struct engine *engine = context;
    uint32_t random;
    engine->io.entropy(engine->io.context, &random, sizeof(random));
    return random;
}

static void open_for_link(void *context, unsigned node)
{
    struct engine *engine = context;
    engine->io.open(engine->io.context, node);
}

static void close_for_link(void *context, unsigned node)
{
    struct engine *engine = context;
    engine->io.close(engine->io.context, node);
}

static void write_for_link(void *context, unsigned node, const char *bytes, size_t len)
{
    struct engine *engine = context;
    engine->io.write(engine->io.context, node, bytes, len);
}

static void heartbeat_for_link(void *context, unsigned node, int64_t now_ns)
{
    struct engine *engine = context;
    warden_heartbeat(&engine->wardens[node], now_ns);
}

static void init_guard(struct engine *engine)
{
    struct guard_rules rules = {
        .node_count = engine->node_count,
        .quorum = engine->rules.round.quorum,
        .drift = engine->rules.round.drift,
        .max_ttl_ns = engine->rules.max_ttl_ns,
        .cluster = engine->rules.cluster,
        .durable = engine->rules.durable,
        .bootstrap = engine->rules.bootstrap,
        .reset_set = engine->rules.reset_set,
    };
    memcpy(rules.node_names, engine->rules.node_names, sizeof(rules.node_names));
    guard_init(&engine->guard, &rules);
    for (unsigned i = 0; i < engine->node_count; i++) {
        engine->wardens[i] = (struct warden){
            .guard = &engine->guard,
            .link = &engine->links[i],
            .node = i,
            .clock_id = engine->rules.clock_id,
        };
        engine->vote_reason[i] = REASON_CONNECTING;
    }
}

bool engine_init(struct engine *engine, const struct engine_rules *rules,
                 const struct engine_io *io, int64_t now_ns)
{
    memset(engine, 0, sizeof(*engine));
    engine->rules = *rules;
    engine->io = *io;
    engine->link_io = (struct link_io){
        .context = engine,
        .open = open_for_link,
        .close = close_for_link,
        .write = write_for_link,
        .heartbeat = heartbeat_for_link,
        .random = random_for_link,
    };
    engine->node_count = rules->round.node_count;
    init_guard(engine);

    struct link_ticket *tickets =
        calloc(engine->node_count, LIMIT_LINK_COMMANDS * sizeof(struct link_ticket));
    engine->ticket_memory = tickets;
    engine->owed_memory = calloc(engine->node_count, LIMIT_LINK_OWED_BYTES);
    if (!extensions_init(&engine->extensions, rules->max_extensions, rules->max_hold_ns) ||
        !operations_init(&engine->operations) || tickets == NULL || engine->owed_memory == NULL ||
        !engine_links_init(engine)) {
        engine_deinit(engine);
        return false;
    }
    const struct link_rules link_rules = {
        .node_timeout_ns = rules->round.node_timeout_ns,
        .heartbeat_every_ns = engine->guard.heartbeat_ns,
        .max_ttl_ms = rules->max_ttl_ns / NS_PER_MS,
    };
    for (unsigned i = 0; i < engine->node_count; i++)
        link_init(&engine->links[i], i, &engine->link_io, &rules->logins[i], &link_rules,
                  tickets + i * LIMIT_LINK_COMMANDS,
                  engine->owed_memory + i * LIMIT_LINK_OWED_BYTES, now_ns);
    return true;
}

void engine_deinit(struct engine *engine)
{
    extensions_deinit(&engine->extensions);
    operations_deinit(&engine->operations);
    free(engine->ticket_memory);
    free(engine->owed_memory);
    engine_links_deinit(engine);
}

void engine_client_init(struct engine_client *client)
{
    LIST_INIT(&client->operations);
    client->operation_count = 0;
    client->gone = false;
}

/* --- answering --- */

/* False if it reached nobody. */
static bool send_reply(struct engine *engine, struct operation *operation,
                       const struct reply *reply)
{
    struct engine_client *client = operation->client;
    operation_leave_client(operation);
    if (!client->gone)
        engine->io.reply(engine->io.context, client, operation->tagged ? operation->tag : NULL,
                         operation->tag_len, reply);
    return !client->gone;
}

static bool answer(struct engine *engine, struct operation *operation, int64_t now_ns)
{
    const struct round *round = &operation->round;
    assert(round->phase == ROUND_SETTLED);
    engine->stats.outcomes[round->kind][round->outcome]++;
    bool granted = round->outcome == OUTCOME_OK && round->kind != ROUND_RELEASE;
    struct reply reply = {
        .outcome = round->outcome,
        .token = granted ? operation->token : NULL,
        .validity_ms = granted ? round_validity_ns(round, now_ns) / NS_PER_MS : 0,
        .elapsed_ms = elapsed_for_client_ms(&round->rules->drift, operation->received_ns, now_ns),
        .fence_field = round->kind == ROUND_ACQUIRE,
        .fence = operation->ballot,
        .hint_ms = round->outcome == OUTCOME_HELD ? round_hint_ms(round, now_ns) : -1,
        .voting = round_voting(round),
        .quorum = round->rules->quorum,
        .node_count = engine->node_count,
        .node_names = engine->rules.node_names,
        .node_reasons = round->reasons,
    };
    return send_reply(engine, operation, &reply);
}

/* --- doing what a round decided --- */

size_t engine_format(const struct engine *engine, const struct operation *operation,
                     enum round_command command, enum redis_form form, char *buf, int64_t now_ns)
{
    const struct round *round = &operation->round;
    struct redis_call call = {
        .command = operation_command(operation, command),
        .token = operation->token,
        .ttl_ms = round->ttl_ns / NS_PER_MS,
        .ballot = operation->ballot,
        .fence_ttl_ms = engine->rules.fence_ttl_ns / NS_PER_MS,
    };
    call.key = operation_key(operation, &call.key_len);
    if (command == ROUND_PLANT)
        call.ttl_ms = round_plant_ttl_ms(round, now_ns);
    else if (call.command == REDIS_RELEASE)
        call.ttl_ms = engine->rules.max_ttl_ns / NS_PER_MS;
    return redis_format(&call, form, buf);
}

void engine_owe(struct engine *engine, unsigned node, const struct operation *operation,
                int64_t now_ns)
{
    size_t key_len;
    const char *key = operation_key(operation, &key_len);
    engine->stats.owed++;
    link_owe(&engine->links[node], key, key_len, operation->token, now_ns);
}

static void start(struct engine *engine, struct operation *operation, int64_t now_ns);
static struct operation *bid_again(struct engine *engine, struct operation *outbid);

/* Write a command to the nodes a round named. It is the same for all, so it is formatted once. */
static void send(struct engine *engine, struct operation *operation, enum round_command command,
                 uint32_t nodes, int64_t now_ns)
{
    char buf[REDIS_COMMAND_MAX];
    size_t len = engine_format(engine, operation, command, REDIS_BY_SHA1, buf, now_ns);
    if (command == ROUND_PLANT)
        engine->stats.planted++;
    uint32_t refused = 0;
    for (unsigned i = 0; i < engine->node_count; i++) {
        if (!(nodes & UINT32_C(1) << i))
            continue;
        struct link *link = &engine->links[i];
        bool release = operation_is_release(operation, command);
        enum reason reason = release ? link_refuses_release(link) : link_refuses_vote(link);
        if (reason == REASON_NONE) {
            engine_write(engine, i,
                         &(struct link_ticket){.kind = TICKET_ROUND,
                                               .command = (uint8_t)command,
                                               .form = REDIS_BY_SHA1,
                                               .epoch = guard_epoch(&engine->guard, i),
                                               .sent_ns = now_ns,
                                               .owner = operation},
                         buf, len);
            continue;
        }
        refused |= UINT32_C(1) << i;
        if (release)
            engine_owe(engine, i, operation, now_ns);
    }
    /* Last, because it may finish the round. */
    for (unsigned i = 0; i < engine->node_count && refused != 0; i++) {
        if (!(refused & UINT32_C(1) << i))
            continue;
        refused &= ~(UINT32_C(1) << i);
        engine_step(
            engine, operation,
            &(struct round_event){.type = ROUND_EVENT_ANSWER,
                                  .now_ns = now_ns,
                                  .node = i,
                                  .command = command,
                                  .answer = {.kind = ANSWER_FAILED, .reason = REASON_BACKLOG}});
    }
}

/* An extension that was granted counts, also if its client has left. */
static void count_extension(struct engine *engine, const struct operation *operation,
                            int64_t now_ns)
{
    const struct round *round = &operation->round;
    if (round->kind == ROUND_EXTEND && round->outcome == OUTCOME_OK)
        extensions_count(&engine->extensions, operation->token, now_ns);
    else if (round->kind == ROUND_RELEASE && round->outcome == OUTCOME_OK)
        extensions_forget(&engine->extensions, operation->token);
}

void engine_step(struct engine *engine, struct operation *operation,
                 const struct round_event *event)
{
    struct round *round = &operation->round;
    bool was_settled = round->phase == ROUND_SETTLED;
    struct round_actions actions;
    round_step(round, event, &actions);
    if (!was_settled && round->phase == ROUND_SETTLED) {
        TAILQ_REMOVE(&engine->operations.waiting, operation, waiting);
        count_extension(engine, operation, event->now_ns);
    }
    bool reached = true;
    struct operation *again = NULL;
    if (actions.answer && round->outcome == OUTCOME_OUTBID)
        again = bid_again(engine, operation);
    if (actions.answer && operation->client != NULL)
        reached = answer(engine, operation, event->now_ns);
    if (!reached && round->kind == ROUND_ACQUIRE && round->outcome == OUTCOME_OK)
        round_step(round,
                   &(struct round_event){.type = ROUND_EVENT_UNDELIVERED, .now_ns = event->now_ns},
                   &actions);
    /* The undo first, so that the nodes are free for the new bid. */
    if (actions.send_to != 0)
        send(engine, operation, actions.send, actions.send_to, event->now_ns);
    else if (actions.finished)
        operation_free(&engine->operations, operation);
    if (again != NULL)
        start(engine, again, event->now_ns);
}

/* --- requests --- */

static enum round_kind round_kind_of(enum verb verb)
{
    switch (verb) {
    case VERB_LOCK:
        return ROUND_ACQUIRE;
    case VERB_EXTEND:
        return ROUND_EXTEND;
    case VERB_UNLOCK:
        return ROUND_RELEASE;
    default:
        assert(verb == VERB_STATUS);
        return ROUND_STATUS;
    }
}

static void make_token(struct engine *engine, char *token)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[LIMIT_TOKEN_BYTES];
    engine->io.entropy(engine->io.context, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        token[2 * i] = digits[bytes[i] >> 4];
        token[2 * i + 1] = digits[bytes[i] & 15];
    }
}

/* A token that is to be released must not be planted by an extension that is still under way. */
static void forbid_planting(struct engine *engine, const struct operation *release, int64_t now_ns)
{
    struct operation *other;
    struct operation *next;
    for (other = operation_first_of(release); other != NULL; other = next) {
        next = LIST_NEXT(other, of_resource);
        if (other != release && other->round.kind == ROUND_EXTEND &&
            memcmp(other->token, release->token, LIMIT_TOKEN) == 0)
            engine_step(engine, other,
                        &(struct round_event){.type = ROUND_EVENT_RELEASING, .now_ns = now_ns});
    }
}

/* The same the other way round: an extension that starts while its token is being released. */
static bool being_released(const struct operation *operation)
{
    const struct operation *other = operation_first_of(operation);
    for (; other != NULL; other = LIST_NEXT(other, of_resource))
        if (other->round.kind == ROUND_RELEASE &&
            memcmp(other->token, operation->token, LIMIT_TOKEN) == 0)
            return true;
    return false;
}

static void start(struct engine *engine, struct operation *operation, int64_t now_ns)
{
    enum round_kind kind = operation->round.kind;
    enum reason reasons[LIMIT_NODES];
    struct round_event event = {
        .type = ROUND_EVENT_START,
        .now_ns = now_ns,
        .unreachable_because = reasons,
    };
    for (unsigned i = 0; i < engine->node_count; i++) {
        const struct link *link = &engine->links[i];
        reasons[i] = kind == ROUND_RELEASE ? link_refuses_release(link)
                                           : engine_refuses_vote(engine, i, now_ns);
        if (reasons[i] == REASON_NONE)
            event.reachable |= UINT32_C(1) << i;
        else if (kind == ROUND_RELEASE)
            engine_owe(engine, i, operation, now_ns);
        else if (link_refuses_vote(link) == REASON_NONE && guard_carries(&engine->guard, i, now_ns))
            event.carrying |= UINT32_C(1) << i;
    }
    engine_step(engine, operation, &event);
}

static void refuse(struct engine *engine, struct engine_client *client,
                   const struct request *request, enum outcome outcome, const char *limit)
{
    struct reply reply = {.outcome = outcome, .limit = limit};
    engine->stats.outcomes[round_kind_of(request->verb)][outcome]++;
    engine->io.reply(engine->io.context, client, request->tag, request->tag_len, &reply);
}

/*
 * A quorum was free, but has seen a greater ballot: once more, at once, above it, and with a fresh
 * token. Only once: who is outbid again has a rival, and the answer is HELD. NULL if there is no
 * room; then, too.
 */
static struct operation *bid_again(struct engine *engine, struct operation *outbid)
{
    const struct round *round = &outbid->round;
    struct engine_client *client = outbid->client;
    struct operation *again = NULL;
    int64_t ballot =
        fence_propose(&engine->fence, engine->io.wall_us(engine->io.context), round->ballot_seen);
    engine->stats.outcomes[ROUND_ACQUIRE][OUTCOME_OUTBID]++;
    if (ballot != 0)
        again = operation_open(&engine->operations, client, &engine->rules.round, ROUND_ACQUIRE,
                               round->ttl_ns, outbid->received_ns);
    if (again == NULL) {
        outbid->round.outcome = OUTCOME_HELD;
        return NULL;
    }
    operation_set_tag(again, outbid->tagged ? outbid->tag : NULL, outbid->tag_len);
    operation_set_resource(again, outbid);
    make_token(engine, again->token);
    again->ballot = ballot;
    operation_leave_client(outbid);
    return again;
}

static void set_key(struct engine *engine, struct operation *operation,
                    const struct request *request)
{
    char key[LIMIT_KEY];
    size_t prefix_len = engine->rules.key_prefix_len;
    assert(prefix_len + request->resource_len <= sizeof(key));
    memcpy(key, engine->rules.key_prefix, prefix_len);
    memcpy(key + prefix_len, request->resource, request->resource_len);
    operation_set_key(&engine->operations, operation, key, prefix_len + request->resource_len);
}

void engine_submit(struct engine *engine, struct engine_client *client,
                   const struct request *request, int64_t now_ns)
{
    enum round_kind kind = round_kind_of(request->verb);
    bool fenced = kind == ROUND_ACQUIRE && (request->fence || engine->rules.fence_always);
    if (engine->draining) {
        refuse(engine, client, request, OUTCOME_SHUTDOWN, NULL);
        return;
    }
    if (client->operation_count >= LIMIT_CLIENT_REQUESTS) {
        refuse(engine, client, request, OUTCOME_LIMIT, "requests");
        return;
    }
    const char *bound = kind == ROUND_EXTEND
                            ? extensions_refuse(&engine->extensions, request->token,
                                                request->ttl_ms * NS_PER_MS, now_ns)
                            : NULL;
    if (bound != NULL) {
        refuse(engine, client, request, OUTCOME_LIMIT, bound);
        return;
    }
    int64_t ballot =
        fenced ? fence_propose(&engine->fence, engine->io.wall_us(engine->io.context), 0) : 0;
    if (fenced && ballot == 0) {
        refuse(engine, client, request, OUTCOME_LIMIT, "fence");
        return;
    }
    struct operation *operation = operation_open(&engine->operations, client, &engine->rules.round,
                                                 kind, request->ttl_ms * NS_PER_MS, now_ns);
    if (operation == NULL) {
        refuse(engine, client, request, OUTCOME_LIMIT, "operations");
        return;
    }
    operation_set_tag(operation, request->tag, request->tag_len);
    set_key(engine, operation, request);
    if (kind == ROUND_ACQUIRE)
        make_token(engine, operation->token);
    else if (kind != ROUND_STATUS)
        memcpy(operation->token, request->token, LIMIT_TOKEN);
    operation->ballot = ballot;
    operation->round.may_bid_again = fenced;

    if (kind == ROUND_RELEASE)
        forbid_planting(engine, operation, now_ns);
    else if (kind == ROUND_EXTEND && being_released(operation))
        operation->round.token_releasing = true;
    start(engine, operation, now_ns);
}

bool engine_tag_in_use(const struct engine_client *client, const char *tag, size_t tag_len)
{
    const struct operation *operation;
    LIST_FOREACH (operation, &client->operations, of_client)
        if (operation->tagged && operation->tag_len == tag_len &&
            memcmp(operation->tag, tag, tag_len) == 0)
            return true;
    return false;
}

static void cancel(struct engine *engine, struct operation *operation, int64_t now_ns)
{
    assert(operation->client == NULL);
    if (operation->round.kind == ROUND_ACQUIRE)
        engine->stats.undone++;
    /* A release goes on, and so does an extension: it does no harm, and is asked for. */
    if (operation->round.kind == ROUND_ACQUIRE || operation->round.kind == ROUND_STATUS)
        engine_step(engine, operation,
                    &(struct round_event){.type = ROUND_EVENT_CANCEL, .now_ns = now_ns});
}

void engine_client_half_closed(struct engine *engine, struct engine_client *client, int64_t now_ns)
{
    struct operation *operation = LIST_FIRST(&client->operations);
    while (operation != NULL) {
        struct operation *next = LIST_NEXT(operation, of_client);
        if (operation->round.kind == ROUND_ACQUIRE) {
            operation_leave_client(operation);
            engine->io.undone(engine->io.context, client, operation->tagged ? operation->tag : NULL,
                              operation->tag_len);
            cancel(engine, operation, now_ns);
        }
        operation = next;
    }
}

void engine_client_gone(struct engine *engine, struct engine_client *client, int64_t now_ns)
{
    struct operation *operation;
    while ((operation = LIST_FIRST(&client->operations)) != NULL) {
        operation_leave_client(operation);
        cancel(engine, operation, now_ns);
    }
}

/* --- time --- */

int64_t engine_deadline_ns(const struct engine *engine)
{
    const struct operation *first = TAILQ_FIRST(&engine->operations.waiting);
    int64_t deadline_ns = first != NULL ? round_deadline_ns(&first->round) : INT64_MAX;
    for (unsigned i = 0; i < engine->node_count; i++) {
        int64_t link_ns = link_deadline_ns(&engine->links[i]);
        deadline_ns = link_ns < deadline_ns ? link_ns : deadline_ns;
    }
    return deadline_ns;
}

void engine_on_timer(struct engine *engine, int64_t now_ns)
{
    struct operation *first;
    while ((first = TAILQ_FIRST(&engine->operations.waiting)) != NULL &&
           round_deadline_ns(&first->round) <= now_ns)
        engine_step(engine, first,
                    &(struct round_event){.type = ROUND_EVENT_DEADLINE, .now_ns = now_ns});
    engine_links_on_timer(engine, now_ns);
}

/* --- the end --- */

void engine_drain(struct engine *engine)
{
    engine->draining = true;
}

void engine_abandon(struct engine *engine, int64_t now_ns)
{
    struct operation *operation;
    while ((operation = TAILQ_FIRST(&engine->operations.waiting)) != NULL) {
        const struct reply reply = {.outcome = OUTCOME_SHUTDOWN};
        engine->stats.outcomes[operation->round.kind][OUTCOME_SHUTDOWN]++;
        if (operation->client != NULL)
            send_reply(engine, operation, &reply);
        engine_step(engine, operation,
                    &(struct round_event){.type = ROUND_EVENT_CANCEL, .now_ns = now_ns});
    }
}

bool engine_busy(const struct engine *engine)
{
    bool busy = !TAILQ_EMPTY(&engine->operations.waiting);
    for (unsigned i = 0; i < engine->node_count; i++)
        busy = busy || link_busy(&engine->links[i]);
    return busy;
}
