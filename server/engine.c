#include "server/engine.h"

#include <assert.h>
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
    char token[LIMIT_TOKEN];
    char tag[LIMIT_TAG];
    size_t tag_len;
    bool tagged;
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
        .random = random_for_link,
    };
    engine->node_count = rules->round.node_count;
    TAILQ_INIT(&engine->waiting);

    struct link_ticket *tickets =
        calloc(engine->node_count, LIMIT_LINK_COMMANDS * sizeof(struct link_ticket));
    engine->ticket_memory = tickets;
    engine->owed_memory = calloc(engine->node_count, LIMIT_LINK_OWED_BYTES);
    if (!pool_init(&engine->operations, sizeof(struct operation), LIMIT_OPERATIONS) ||
        !pool_init(&engine->resources, sizeof(struct resource), LIMIT_OPERATIONS + 1) ||
        tickets == NULL || engine->owed_memory == NULL) {
        engine_deinit(engine);
        return false;
    }
    for (unsigned i = 0; i < engine->node_count; i++)
        link_init(&engine->links[i], i, &engine->link_io, &rules->logins[i],
                  rules->round.node_timeout_ns, tickets + i * LIMIT_LINK_COMMANDS,
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
    pool_deinit(&engine->operations);
    pool_deinit(&engine->resources);
    free(engine->ticket_memory);
    free(engine->owed_memory);
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

static enum redis_command redis_command_of(const struct round *round, enum round_command command)
{
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
        return REDIS_ACQUIRE;
    case ROUND_EXTEND:
        return REDIS_EXTEND;
    case ROUND_RELEASE:
        return REDIS_RELEASE;
    case ROUND_STATUS:
        break;
    }
    return REDIS_STATUS;
}

static size_t format(const struct operation *operation, enum round_command command,
                     enum redis_form form, char *buf, int64_t now_ns)
{
    const struct round *round = &operation->round;
    struct redis_call call = {
        .command = redis_command_of(round, command),
        .key = operation->resource->key,
        .key_len = operation->resource->key_len,
        .token = operation->token,
        .ttl_ms =
            command == ROUND_PLANT ? round_plant_ttl_ms(round, now_ns) : round->ttl_ns / NS_PER_MS,
    };
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
    return redis_command_of(&operation->round, command) == REDIS_RELEASE;
}

/* Log what a link has become, if it has changed. */
static void note_link(struct engine *engine, unsigned node, enum link_state before)
{
    if (engine->links[node].state != before)
        engine->io.link_changed(engine->io.context, node, before);
}

static void step(struct engine *engine, struct operation *operation,
                 const struct round_event *event);

/* Write a command to the nodes a round named. It is the same for all, so it is formatted once. */
static void send(struct engine *engine, struct operation *operation, enum round_command command,
                 uint32_t nodes, int64_t now_ns)
{
    char buf[REDIS_COMMAND_MAX];
    size_t len = format(operation, command, REDIS_BY_SHA1, buf, now_ns);
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
            link_send(link, buf, len, (uint8_t)command, REDIS_BY_SHA1, operation, now_ns);
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

/* Take one step, and do what it asks for. The operation may be gone afterwards. */
static void step(struct engine *engine, struct operation *operation,
                 const struct round_event *event)
{
    struct round *round = &operation->round;
    bool was_settled = round->phase == ROUND_SETTLED;
    struct round_actions actions;
    round_step(round, event, &actions);
    if (!was_settled && round->phase == ROUND_SETTLED)
        TAILQ_REMOVE(&engine->waiting, operation, waiting);
    bool reached = true;
    if (actions.answer && operation->client != NULL)
        reached = answer(engine, operation, event->now_ns);
    if (!reached && round->kind == ROUND_ACQUIRE && round->outcome == OUTCOME_OK)
        round_step(round,
                   &(struct round_event){.type = ROUND_EVENT_UNDELIVERED, .now_ns = event->now_ns},
                   &actions);
    if (actions.send_to != 0)
        send(engine, operation, actions.send, actions.send_to, event->now_ns);
    else if (actions.finished)
        free_operation(engine, operation);
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
        reasons[i] = kind == ROUND_RELEASE ? link_refuses_release(link) : link_refuses_vote(link);
        if (reasons[i] == REASON_NONE)
            event.reachable |= UINT32_C(1) << i;
        else if (kind == ROUND_RELEASE)
            owe(engine, i, operation, now_ns);
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

void engine_submit(struct engine *engine, struct engine_client *client,
                   const struct request *request, int64_t now_ns)
{
    if (engine->draining) {
        refuse(engine, client, request, OUTCOME_SHUTDOWN, NULL);
        return;
    }
    if (client->operation_count >= LIMIT_CLIENT_REQUESTS) {
        refuse(engine, client, request, OUTCOME_LIMIT, "requests");
        return;
    }
    struct operation *operation = pool_take(&engine->operations);
    if (operation == NULL) {
        refuse(engine, client, request, OUTCOME_LIMIT, "operations");
        return;
    }
    enum round_kind kind = round_kind_of(request->verb);
    round_init(&operation->round, &engine->rules.round, kind, request->ttl_ms * NS_PER_MS);
    operation->received_ns = now_ns;
    operation->tagged = request->tag != NULL;
    operation->tag_len = request->tag_len;
    memcpy(operation->tag, request->tag != NULL ? request->tag : "", request->tag_len);
    if (kind == ROUND_ACQUIRE)
        make_token(engine, operation->token);
    else if (kind != ROUND_STATUS)
        memcpy(operation->token, request->token, LIMIT_TOKEN);

    operation->client = client;
    LIST_INSERT_HEAD(&client->operations, operation, of_client);
    client->operation_count++;
    operation->resource = take_resource(engine, request);
    LIST_INSERT_HEAD(&operation->resource->operations, operation, of_resource);
    /* All rounds have the same time, so the order of their starts is that of their deadlines. */
    TAILQ_INSERT_TAIL(&engine->waiting, operation, waiting);

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

/* What a round had under way on a connection that is lost comes back as failed. */
static void fail_lost(struct engine *engine, unsigned node, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    struct link_ticket ticket;
    while (link->state == LINK_DOWN && link_take_lost(link, &ticket)) {
        struct operation *operation = ticket.owner;
        enum round_command command = ticket.command;
        if (is_release(operation, command))
            owe(engine, node, operation, now_ns);
        step(engine, operation,
             &(struct round_event){.type = ROUND_EVENT_ANSWER,
                                   .now_ns = now_ns,
                                   .node = node,
                                   .command = command,
                                   .answer = {.kind = ANSWER_FAILED, .reason = link->reason}});
    }
}

void engine_on_connected(struct engine *engine, unsigned node, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    enum link_state before = link->state;
    link_on_connected(link, now_ns);
    note_link(engine, node, before);
}

void engine_on_closed(struct engine *engine, unsigned node, enum reason reason, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    enum link_state before = link->state;
    link_on_closed(link, reason, now_ns);
    note_link(engine, node, before);
    fail_lost(engine, node, now_ns);
}

static void on_round_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                           const struct link_ticket *ticket, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    struct operation *operation = ticket->owner;
    enum round_command command = ticket->command;
    struct answer said = redis_answer(redis_command_of(&operation->round, command), reply);

    /* The scripts have been flushed: send it in full, which loads it again, in the same round. */
    if (said.kind == ANSWER_FAILED && said.reason == REASON_NOSCRIPT &&
        ticket->form == REDIS_BY_SHA1) {
        char buf[REDIS_COMMAND_MAX];
        size_t len = format(operation, command, REDIS_IN_FULL, buf, now_ns);
        link_send(link, buf, len, (uint8_t)command, REDIS_IN_FULL, operation, now_ns);
        return;
    }
    if (said.kind == ANSWER_FAILED && is_release(operation, command))
        owe(engine, node, operation, now_ns);
    step(engine, operation,
         &(struct round_event){.type = ROUND_EVENT_ANSWER,
                               .now_ns = now_ns,
                               .node = node,
                               .command = command,
                               .answer = said});
}

bool engine_on_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                     int64_t now_ns)
{
    struct link *link = &engine->links[node];
    enum link_state before = link->state;
    struct link_ticket ticket;
    bool of_round = link_on_reply(link, reply, now_ns, &ticket);
    note_link(engine, node, before);
    if (link->state == LINK_DOWN) {
        fail_lost(engine, node, now_ns);
        return false;
    }
    if (of_round)
        on_round_reply(engine, node, reply, &ticket, now_ns);
    return true;
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
        note_link(engine, i, before);
        if (engine->links[i].state == LINK_DOWN)
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
