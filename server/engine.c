#include "server/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* A key somebody is busy with, and the operations on it. */
struct resource {
    UT_hash_handle hh;
    LIST_HEAD(, operation) operations;
    size_t key_len;
    char key[LIMIT_KEY]; /* with its prefix */
};

/* One request on its way: a round, and what belongs to it. */
struct operation {
    struct round round;
    struct resource *resource;
    struct engine_client *client; /* NULL once answered, or once the client left */
    LIST_ENTRY(operation) of_client;
    LIST_ENTRY(operation) of_resource;
    TAILQ_ENTRY(operation) waiting; /* while the round is not settled */
    int64_t received_ns;
    int64_t ballot; /* LOCK with FENCE; 0 without */
    char token[LIMIT_TOKEN];
    char tag[LIMIT_TAG];
    size_t tag_len;
    bool tagged;
};

/* The answer of a node to a command that asked for its vote, until the guard has passed. */
struct vote {
    struct operation *operation;
    struct answer answer;
    int64_t sent_ns;
    uint32_t epoch;
};

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
    TAILQ_INIT(&engine->waiting);

    struct link_ticket *tickets =
        calloc(engine->node_count, LIMIT_LINK_COMMANDS * sizeof(struct link_ticket));
    engine->ticket_memory = tickets;
    engine->owed_memory = calloc(engine->node_count, LIMIT_LINK_OWED_BYTES);
    engine->votes = calloc(engine->node_count, LIMIT_LINK_COMMANDS * sizeof(struct vote));
    if (!extensions_init(&engine->extensions, rules->max_extensions, rules->max_hold_ns) ||
        !pool_init(&engine->operations, sizeof(struct operation), LIMIT_OPERATIONS) ||
        !pool_init(&engine->resources, sizeof(struct resource), LIMIT_OPERATIONS + 1) ||
        tickets == NULL || engine->owed_memory == NULL || engine->votes == NULL) {
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

    /* uthash frees its table with the last item and allocates it with the first. An item that stays
     * keeps that off the way of a request; no key is empty, so nobody finds it. */
    engine->sentinel = pool_take(&engine->resources);
    engine->sentinel->key_len = 0;
    HASH_ADD_KEYPTR(hh, engine->by_key, engine->sentinel->key, 0, engine->sentinel);
    return true;
}

void engine_deinit(struct engine *engine)
{
    HASH_CLEAR(hh, engine->by_key);
    extensions_deinit(&engine->extensions);
    pool_deinit(&engine->operations);
    pool_deinit(&engine->resources);
    free(engine->ticket_memory);
    free(engine->owed_memory);
    free(engine->votes);
}

void engine_client_init(struct engine_client *client)
{
    LIST_INIT(&client->operations);
    client->operation_count = 0;
    client->gone = false;
}

static struct resource *take_resource(struct engine *engine, const struct request *request)
{
    char key[LIMIT_KEY];
    size_t prefix_len = engine->rules.key_prefix_len;
    size_t key_len = prefix_len + request->resource_len;
    assert(key_len <= sizeof(key));
    memcpy(key, engine->rules.key_prefix, prefix_len);
    memcpy(key + prefix_len, request->resource, request->resource_len);

    struct resource *resource;
    HASH_FIND(hh, engine->by_key, key, key_len, resource);
    if (resource != NULL)
        return resource;
    resource = pool_take(&engine->resources);
    assert(resource != NULL); /* there are as many as operations */
    LIST_INIT(&resource->operations);
    resource->key_len = key_len;
    memcpy(resource->key, key, key_len);
    HASH_ADD_KEYPTR(hh, engine->by_key, resource->key, key_len, resource);
    return resource;
}

static void free_operation(struct engine *engine, struct operation *operation)
{
    assert(operation->client == NULL);
    struct resource *resource = operation->resource;
    LIST_REMOVE(operation, of_resource);
    if (LIST_EMPTY(&resource->operations)) {
        HASH_DELETE(hh, engine->by_key, resource);
        pool_give(&engine->resources, resource);
    }
    pool_give(&engine->operations, operation);
}

/* --- answering --- */

static void leave_client(struct operation *operation)
{
    if (operation->client == NULL)
        return;
    LIST_REMOVE(operation, of_client);
    operation->client->operation_count--;
    operation->client = NULL;
}

/* False if it reached nobody. */
static bool send_reply(struct engine *engine, struct operation *operation,
                       const struct reply *reply)
{
    struct engine_client *client = operation->client;
    leave_client(operation);
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

static enum redis_command redis_command_of(const struct operation *operation,
                                           enum round_command command)
{
    const struct round *round = &operation->round;
    switch (command) {
    case ROUND_UNDO:
        return REDIS_RELEASE;
    case ROUND_PLANT:
        return REDIS_PLANT;
    case ROUND_VOTE:
    case ROUND_COMMANDS:
        break;
    }
    switch (round->kind) {
    case ROUND_ACQUIRE:
        return operation->ballot != 0 ? REDIS_ACQUIRE_FENCED : REDIS_ACQUIRE;
    case ROUND_EXTEND:
        return REDIS_EXTEND;
    case ROUND_RELEASE:
        return REDIS_RELEASE;
    case ROUND_STATUS:
        break;
    }
    return REDIS_STATUS;
}

static size_t format(const struct engine *engine, const struct operation *operation,
                     enum round_command command, enum redis_form form, char *buf, int64_t now_ns)
{
    const struct round *round = &operation->round;
    struct redis_call call = {
        .command = redis_command_of(operation, command),
        .key = operation->resource->key,
        .key_len = operation->resource->key_len,
        .token = operation->token,
        .ttl_ms = round->ttl_ns / NS_PER_MS,
        .ballot = operation->ballot,
        .fence_ttl_ms = engine->rules.fence_ttl_ns / NS_PER_MS,
    };
    if (command == ROUND_PLANT)
        call.ttl_ms = round_plant_ttl_ms(round, now_ns);
    else if (call.command == REDIS_RELEASE)
        call.ttl_ms = engine->rules.max_ttl_ns / NS_PER_MS;
    return redis_format(&call, form, buf);
}

static void owe(struct engine *engine, unsigned node, const struct operation *operation,
                int64_t now_ns)
{
    engine->stats.owed++;
    link_owe(&engine->links[node], operation->resource->key, operation->resource->key_len,
             operation->token, now_ns);
}

static bool is_release(const struct operation *operation, enum round_command command)
{
    return redis_command_of(operation, command) == REDIS_RELEASE;
}

enum reason engine_refuses_vote(const struct engine *engine, unsigned node, int64_t now_ns)
{
    enum reason reason = link_refuses_vote(&engine->links[node]);
    return reason != REASON_NONE ? reason : guard_refuses_vote(&engine->guard, node, now_ns);
}

/* Log which nodes have lost their vote, or got it back. */
static void note_votes(struct engine *engine, int64_t now_ns)
{
    for (unsigned i = 0; i < engine->node_count; i++) {
        enum reason before = engine->vote_reason[i];
        enum reason reason = engine_refuses_vote(engine, i, now_ns);
        if (reason == before || reason == REASON_BACKLOG)
            continue;
        engine->vote_reason[i] = reason;
        engine->io.vote_changed(engine->io.context, i, before, reason, now_ns);
    }
}

static bool is_connected(enum link_state state)
{
    return state == LINK_UP || state == LINK_SUSPECT;
}

/* Log what a link has become, if it has changed, and have the guard look at who is there. */
static void note_link(struct engine *engine, unsigned node, enum link_state before, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    if (link->state == before)
        return;
    engine->io.link_changed(engine->io.context, node, before);
    if (is_connected(link->state) && !is_connected(before)) {
        guard_on_connected(&engine->guard, node, link->run_id);
        engine->errands = true;
        link_heartbeat(link, now_ns);
    } else if (is_connected(before) && !is_connected(link->state)) {
        warden_on_lost(&engine->wardens[node]);
    }
    note_votes(engine, now_ns);
}

static void step(struct engine *engine, struct operation *operation,
                 const struct round_event *event);
static void start(struct engine *engine, struct operation *operation, int64_t now_ns);
static struct operation *bid_again(struct engine *engine, struct operation *outbid);

/* Does its answer count only with the guard's behind it? */
static bool is_vote(const struct operation *operation, enum round_command command)
{
    return command == ROUND_VOTE && operation->round.kind != ROUND_RELEASE;
}

static void write_command(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                          const char *bytes, size_t len)
{
    if (is_vote(ticket->owner, ticket->command))
        engine->unguarded |= UINT32_C(1) << node;
    link_send(&engine->links[node], bytes, len, ticket);
}

/* Write a command to the nodes a round named. It is the same for all, so it is formatted once. */
static void send(struct engine *engine, struct operation *operation, enum round_command command,
                 uint32_t nodes, int64_t now_ns)
{
    char buf[REDIS_COMMAND_MAX];
    size_t len = format(engine, operation, command, REDIS_BY_SHA1, buf, now_ns);
    if (command == ROUND_PLANT)
        engine->stats.planted++;
    uint32_t refused = 0;
    for (unsigned i = 0; i < engine->node_count; i++) {
        if (!(nodes & UINT32_C(1) << i))
            continue;
        struct link *link = &engine->links[i];
        bool release = is_release(operation, command);
        enum reason reason = release ? link_refuses_release(link) : link_refuses_vote(link);
        if (reason == REASON_NONE) {
            write_command(engine, i,
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
            owe(engine, i, operation, now_ns);
    }
    /* Last, because it may finish the round. */
    for (unsigned i = 0; i < engine->node_count && refused != 0; i++) {
        if (!(refused & UINT32_C(1) << i))
            continue;
        refused &= ~(UINT32_C(1) << i);
        step(engine, operation,
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
    else if (round->kind == ROUND_RELEASE || round->outcome == OUTCOME_GONE)
        extensions_forget(&engine->extensions, operation->token);
}

/* Take one step, and do what it asks for. The operation may be gone afterwards. */
static void step(struct engine *engine, struct operation *operation,
                 const struct round_event *event)
{
    struct round *round = &operation->round;
    bool was_settled = round->phase == ROUND_SETTLED;
    struct round_actions actions;
    round_step(round, event, &actions);
    if (!was_settled && round->phase == ROUND_SETTLED) {
        TAILQ_REMOVE(&engine->waiting, operation, waiting);
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
        free_operation(engine, operation);
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
    for (other = LIST_FIRST(&release->resource->operations); other != NULL; other = next) {
        next = LIST_NEXT(other, of_resource);
        if (other != release && other->round.kind == ROUND_EXTEND &&
            memcmp(other->token, release->token, LIMIT_TOKEN) == 0)
            step(engine, other,
                 &(struct round_event){.type = ROUND_EVENT_RELEASING, .now_ns = now_ns});
    }
}

/* The same the other way round: an extension that starts while its token is being released. */
static bool being_released(const struct operation *operation)
{
    const struct operation *other;
    LIST_FOREACH (other, &operation->resource->operations, of_resource)
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
            owe(engine, i, operation, now_ns);
        else if (link_refuses_vote(link) == REASON_NONE && guard_carries(&engine->guard, i, now_ns))
            event.carrying |= UINT32_C(1) << i;
    }
    step(engine, operation, &event);
}

static void refuse(struct engine *engine, struct engine_client *client,
                   const struct request *request, enum outcome outcome, const char *limit)
{
    struct reply reply = {.outcome = outcome, .limit = limit};
    engine->stats.outcomes[round_kind_of(request->verb)][outcome]++;
    engine->io.reply(engine->io.context, client, request->tag, request->tag_len, &reply);
}

/* For the client and the resource: to be started. NULL if there is no room. */
static struct operation *open_operation(struct engine *engine, struct engine_client *client,
                                        enum round_kind kind, int64_t ttl_ns, int64_t received_ns)
{
    struct operation *operation = pool_take(&engine->operations);
    if (operation == NULL)
        return NULL;
    round_init(&operation->round, &engine->rules.round, kind, ttl_ns);
    operation->received_ns = received_ns;
    operation->ballot = 0;
    operation->client = client;
    LIST_INSERT_HEAD(&client->operations, operation, of_client);
    client->operation_count++;
    /* All rounds have the same time, so the order of their starts is that of their deadlines. */
    TAILQ_INSERT_TAIL(&engine->waiting, operation, waiting);
    return operation;
}

static void set_tag(struct operation *operation, const char *tag, size_t tag_len)
{
    operation->tagged = tag != NULL;
    operation->tag_len = tag_len;
    memcpy(operation->tag, tag != NULL ? tag : "", tag_len);
}

static void set_resource(struct operation *operation, struct resource *resource)
{
    operation->resource = resource;
    LIST_INSERT_HEAD(&resource->operations, operation, of_resource);
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
        again = open_operation(engine, client, ROUND_ACQUIRE, round->ttl_ns, outbid->received_ns);
    if (again == NULL) {
        outbid->round.outcome = OUTCOME_HELD;
        return NULL;
    }
    set_tag(again, outbid->tagged ? outbid->tag : NULL, outbid->tag_len);
    set_resource(again, outbid->resource);
    make_token(engine, again->token);
    again->ballot = ballot;
    leave_client(outbid);
    return again;
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
    struct operation *operation =
        open_operation(engine, client, kind, request->ttl_ms * NS_PER_MS, now_ns);
    if (operation == NULL) {
        refuse(engine, client, request, OUTCOME_LIMIT, "operations");
        return;
    }
    set_tag(operation, request->tag, request->tag_len);
    set_resource(operation, take_resource(engine, request));
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
        step(engine, operation,
             &(struct round_event){.type = ROUND_EVENT_CANCEL, .now_ns = now_ns});
}

void engine_client_half_closed(struct engine *engine, struct engine_client *client, int64_t now_ns)
{
    struct operation *operation = LIST_FIRST(&client->operations);
    while (operation != NULL) {
        struct operation *next = LIST_NEXT(operation, of_client);
        if (operation->round.kind == ROUND_ACQUIRE) {
            leave_client(operation);
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
        leave_client(operation);
        cancel(engine, operation, now_ns);
    }
}

/* --- the links --- */

static void deliver(struct engine *engine, unsigned node, struct operation *operation,
                    enum round_command command, const struct answer *said, int64_t now_ns)
{
    step(engine, operation,
         &(struct round_event){.type = ROUND_EVENT_ANSWER,
                               .now_ns = now_ns,
                               .node = node,
                               .command = command,
                               .answer = *said});
}

static struct vote *votes_of(struct engine *engine, unsigned node)
{
    return engine->votes + (size_t)node * LIMIT_LINK_COMMANDS;
}

/* The guard has spoken about all votes of a node that wait: `failed` tells why they do not count.
 */
static void deliver_votes(struct engine *engine, unsigned node, enum reason failed, int64_t now_ns)
{
    const struct vote *votes = votes_of(engine, node);
    unsigned count = engine->vote_count[node];
    uint32_t epoch = guard_epoch(&engine->guard, node);
    engine->vote_count[node] = 0;
    for (unsigned i = 0; i < count; i++) {
        struct answer answer = votes[i].answer;
        enum reason reason = failed;
        if (reason == REASON_NONE && votes[i].epoch != epoch)
            reason = REASON_UNCHECKED;
        if (reason != REASON_NONE)
            answer = (struct answer){.kind = ANSWER_FAILED, .reason = reason};
        deliver(engine, node, votes[i].operation, ROUND_VOTE, &answer, now_ns);
    }
}

/* What a round had under way on a connection that is lost comes back as failed. */
static void fail_lost(struct engine *engine, unsigned node, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    struct link_ticket ticket;
    if (link->state != LINK_DOWN)
        return;
    engine->unguarded &= ~(UINT32_C(1) << node);
    deliver_votes(engine, node, link->reason, now_ns);
    while (link->state == LINK_DOWN && link_take_lost(link, &ticket)) {
        struct operation *operation = ticket.owner;
        enum round_command command = ticket.command;
        if (is_release(operation, command))
            owe(engine, node, operation, now_ns);
        deliver(engine, node, operation, command,
                &(struct answer){.kind = ANSWER_FAILED, .reason = link->reason}, now_ns);
    }
}

void engine_on_connected(struct engine *engine, unsigned node, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    enum link_state before = link->state;
    link_on_connected(link, now_ns);
    note_link(engine, node, before, now_ns);
}

void engine_on_closed(struct engine *engine, unsigned node, enum reason reason, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    enum link_state before = link->state;
    link_on_closed(link, reason, now_ns);
    note_link(engine, node, before, now_ns);
    fail_lost(engine, node, now_ns);
}

static void keep_vote(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                      const struct answer *said, int64_t now_ns)
{
    /* While nothing is proven, votes pile up. */
    if (engine->vote_count[node] == LIMIT_LINK_COMMANDS) {
        deliver(engine, node, ticket->owner, ROUND_VOTE,
                &(struct answer){.kind = ANSWER_FAILED, .reason = REASON_CLOCK}, now_ns);
        return;
    }
    votes_of(engine, node)[engine->vote_count[node]++] = (struct vote){
        .operation = ticket->owner,
        .answer = *said,
        .sent_ns = ticket->sent_ns,
        .epoch = ticket->epoch,
    };
}

/* The scripts have been flushed: send it in full, which loads it again, in the same round, and in
 * the epoch in which its vote was asked for. */
static bool send_in_full(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                         int64_t now_ns)
{
    const struct link *link = &engine->links[node];
    enum reason refused = is_release(ticket->owner, ticket->command) ? link_refuses_release(link)
                                                                     : link_refuses_vote(link);
    if (ticket->form == REDIS_IN_FULL || refused != REASON_NONE)
        return false;
    char buf[REDIS_COMMAND_MAX];
    size_t len = format(engine, ticket->owner, ticket->command, REDIS_IN_FULL, buf, now_ns);
    struct link_ticket again = *ticket;
    again.form = REDIS_IN_FULL;
    again.sent_ns = now_ns;
    write_command(engine, node, &again, buf, len);
    return true;
}

static void on_round_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                           const struct link_ticket *ticket, int64_t now_ns)
{
    struct operation *operation = ticket->owner;
    enum round_command command = ticket->command;
    struct answer said = redis_answer(redis_command_of(operation, command), reply);

    if (said.kind == ANSWER_FAILED && said.reason == REASON_NOSCRIPT &&
        send_in_full(engine, node, ticket, now_ns))
        return;
    if (said.kind == ANSWER_FAILED && is_release(operation, command))
        owe(engine, node, operation, now_ns);
    if (said.kind != ANSWER_FAILED && is_vote(operation, command))
        keep_vote(engine, node, ticket, &said, now_ns);
    else
        deliver(engine, node, operation, command, &said, now_ns);
}

/* A sample that proves nothing: another may, for votes that are not too late anyway. */
static void wait_for_guard(struct engine *engine, unsigned node, int64_t now_ns)
{
    struct vote *votes = votes_of(engine, node);
    unsigned count = engine->vote_count[node];
    unsigned late = 0;
    while (late < count && now_ns - votes[late].sent_ns > engine->rules.round.node_timeout_ns)
        deliver(engine, node, votes[late++].operation, ROUND_VOTE,
                &(struct answer){.kind = ANSWER_FAILED, .reason = REASON_CLOCK}, now_ns);
    memmove(votes, votes + late, (count - late) * sizeof(votes[0]));
    engine->vote_count[node] = count - late;
    if (late < count)
        engine->guard.probe |= UINT32_C(1) << node;
}

static void on_guard_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                           const struct link_ticket *ticket, int64_t now_ns)
{
    struct warden *warden = &engine->wardens[node];
    unsigned alone = warden->probes;
    enum reason reason;
    switch (warden_on_reply(warden, ticket, reply, now_ns)) {
    case WARDEN_MORE:
        return;
    case WARDEN_PASS:
        deliver_votes(engine, node, REASON_NONE, now_ns);
        /* Behind votes, the common case, it has changed nothing that would need a look. */
        if (warden->probes == alone)
            return;
        break;
    case WARDEN_WAIT:
        wait_for_guard(engine, node, now_ns);
        break;
    case WARDEN_FAIL:
        reason = guard_refuses_vote(&engine->guard, node, now_ns);
        deliver_votes(engine, node, reason != REASON_NONE ? reason : REASON_UNCHECKED, now_ns);
        break;
    case WARDEN_LOOKED:
        break;
    }
    note_votes(engine, now_ns);
    engine->errands = true;
}

bool engine_on_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                     int64_t now_ns)
{
    struct link *link = &engine->links[node];
    enum link_state before = link->state;
    struct link_ticket ticket;
    bool wanted = link_on_reply(link, reply, now_ns, &ticket);
    note_link(engine, node, before, now_ns);
    if (link->state == LINK_DOWN) {
        fail_lost(engine, node, now_ns);
        return false;
    }
    if (wanted && ticket.kind == TICKET_ROUND)
        on_round_reply(engine, node, reply, &ticket, now_ns);
    else if (wanted)
        on_guard_reply(engine, node, reply, &ticket, now_ns);
    return true;
}

/* --- the end of a pass --- */

bool engine_wants_flush(const struct engine *engine)
{
    return engine->unguarded != 0 || engine->errands;
}

/* What the guard has asked for of nodes other than the one it was looking at. */
static void run_errands(struct engine *engine, int64_t now_ns)
{
    struct guard *guard = &engine->guard;
    uint32_t probe = guard->probe;
    engine->errands = false;
    guard->probe = 0;
    for (unsigned i = 0; i < engine->node_count; i++) {
        uint32_t node = UINT32_C(1) << i;
        if (!is_connected(engine->links[i].state)) {
            guard->beat &= ~node;
            continue;
        }
        warden_mark(&engine->wardens[i], now_ns);
        if (probe & node)
            warden_probe(&engine->wardens[i], now_ns);
        /* One that is under way was written before the reason for this one. */
        if (!(guard->beat & node) || engine->links[i].heartbeat_due)
            continue;
        guard->beat &= ~node;
        link_heartbeat(&engine->links[i], now_ns);
    }
}

void engine_flush(struct engine *engine, int64_t now_ns)
{
    uint32_t unguarded = engine->unguarded;
    engine->unguarded = 0;
    for (unsigned i = 0; i < engine->node_count && unguarded >> i != 0; i++)
        if (unguarded & UINT32_C(1) << i)
            warden_probe_batch(&engine->wardens[i], now_ns);
    if (engine->errands)
        run_errands(engine, now_ns);
}

/* --- time --- */

int64_t engine_deadline_ns(const struct engine *engine)
{
    const struct operation *first = TAILQ_FIRST(&engine->waiting);
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
    while ((first = TAILQ_FIRST(&engine->waiting)) != NULL &&
           round_deadline_ns(&first->round) <= now_ns)
        step(engine, first, &(struct round_event){.type = ROUND_EVENT_DEADLINE, .now_ns = now_ns});
    for (unsigned i = 0; i < engine->node_count; i++) {
        enum link_state before = engine->links[i].state;
        link_on_timer(&engine->links[i], now_ns);
        note_link(engine, i, before, now_ns);
        fail_lost(engine, i, now_ns);
    }
}

/* --- the end --- */

void engine_drain(struct engine *engine)
{
    engine->draining = true;
}

void engine_abandon(struct engine *engine, int64_t now_ns)
{
    struct operation *operation;
    while ((operation = TAILQ_FIRST(&engine->waiting)) != NULL) {
        const struct reply reply = {.outcome = OUTCOME_SHUTDOWN};
        engine->stats.outcomes[operation->round.kind][OUTCOME_SHUTDOWN]++;
        if (operation->client != NULL)
            send_reply(engine, operation, &reply);
        step(engine, operation,
             &(struct round_event){.type = ROUND_EVENT_CANCEL, .now_ns = now_ns});
    }
}

bool engine_busy(const struct engine *engine)
{
    bool busy = !TAILQ_EMPTY(&engine->waiting);
    for (unsigned i = 0; i < engine->node_count; i++)
        busy = busy || link_busy(&engine->links[i]);
    return busy;
}
