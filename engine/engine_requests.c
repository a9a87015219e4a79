#include <assert.h>
#include <string.h>

#include "engine/engine_parts.h"
#include "protocol/eight.h"
#include "protocol/units.h"

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
        assert(verb == VERB_STATUS || verb == VERB_BREAK);
        return ROUND_STATUS;
    }
}

static void refuse(struct engine *engine, struct engine_client *client,
                   const struct request *request, enum outcome outcome, const char *limit)
{
    struct reply reply = {.outcome = outcome, .limit = limit};
    if (request->verb != VERB_BREAK)
        engine->stats.outcomes[round_kind_of(request->verb)][outcome]++;
    engine->io.reply(engine->io.context, client, request->tag, request->tag_len, &reply);
}

const struct resource *engine_find(const struct engine *engine, const struct request *request)
{
    return resource_find(&engine->resources, request->resource, request->resource_len);
}

/* UNLOCK, EXTEND or STATUS: one round, at once. NULL if there is no room for it. */
static struct operation *open_round(struct engine *engine, struct engine_client *client,
                                    const struct request *request, struct resource *resource,
                                    int64_t now_ns)
{
    struct call *call = call_open(&engine->calls, client, request, now_ns);
    if (call == NULL)
        return NULL;
    struct operation *operation =
        operation_open(&engine->operations, resource, &engine->rules.round,
                       round_kind_of(request->verb), request->ttl_ms * NS_PER_MS);
    if (operation == NULL) {
        call_close(&engine->calls, call);
        return NULL;
    }
    operation_set_call(operation, call);
    if (request->token != NULL)
        memcpy(operation->token, request->token, LIMIT_TOKEN);
    return operation;
}

/* ... that has not begun. */
static void close_round(struct engine *engine, struct operation *operation)
{
    struct call *call = operation->call;
    operation->call = NULL;
    call->operation = NULL;
    call_close(&engine->calls, call);
    TAILQ_REMOVE(&engine->operations.waiting, operation, of_list);
    operation_free(&engine->operations, operation);
}

static void submit(struct engine *engine, struct engine_client *client,
                   const struct request *request, struct resource *resource, int64_t now_ns)
{
    struct operation *operation;
    const char *bound = NULL;
    if (request->verb == VERB_LOCK) {
        engine_lock(engine, client, request, resource, now_ns);
        return;
    }
    if (request->verb == VERB_EXTEND && extensions_ended(&engine->extensions, request->token)) {
        refuse(engine, client, request, OUTCOME_GONE, NULL);
        return;
    }
    if (request->verb == VERB_EXTEND)
        bound = engine_refuses_extension(engine, client, request, resource, now_ns);
    if (bound != NULL) {
        refuse(engine, client, request, OUTCOME_LIMIT, bound);
        return;
    }
    operation = open_round(engine, client, request, resource, now_ns);
    if (operation == NULL) {
        refuse(engine, client, request, OUTCOME_LIMIT, "operations");
    } else if (request->verb == VERB_UNLOCK) {
        bool known = engine_end_lock(engine, resource, request->token, client);
        engine_release(engine, resource, request->token, operation, known, now_ns);
    } else if (request->verb == VERB_BREAK && !engine_break(engine, operation)) {
        close_round(engine, operation);
        refuse(engine, client, request, OUTCOME_LIMIT, "breaks");
    } else {
        engine_start(engine, operation, now_ns);
    }
}

void engine_submit(struct engine *engine, struct engine_client *client,
                   const struct request *request, int64_t now_ns)
{
    engine_catch_up(engine, now_ns);
    if (engine->draining) {
        refuse(engine, client, request, OUTCOME_SHUTDOWN, NULL);
        return;
    }
    if (client->call_count >= LIMIT_CLIENT_REQUESTS) {
        refuse(engine, client, request, OUTCOME_LIMIT, "requests");
        return;
    }
    struct resource *resource =
        resource_take(&engine->resources, &engine->queue_rules, ++engine->queue_seed,
                      request->resource, request->resource_len);
    if (resource == NULL) {
        refuse(engine, client, request, OUTCOME_LIMIT, "operations");
        return;
    }
    submit(engine, client, request, resource, now_ns);
    resource_note_idle(&engine->resources, resource);
    engine_finish(engine, now_ns);
}

bool engine_tag_in_use(const struct engine_client *client, const char *tag, size_t tag_len)
{
    const struct call *call;
    assert(tag_len <= LIMIT_TAG);
    /* Most have one request after the other. */
    if (LIST_EMPTY(&client->calls))
        return false;
    /* All are padded to one length, and most differ in the first eight bytes. */
    char padded[LIMIT_TAG] = {0};
    memcpy(padded, tag, tag_len);
    uint64_t first = eight_load(padded);
    LIST_FOREACH (call, &client->calls, of_client)
        if (eight_load(call->tag) == first && call->tagged &&
            memcmp(call->tag, padded, sizeof(padded)) == 0)
            return true;
    return false;
}

/* --- clients that leave --- */

/* Nobody waits for the answer of this call any more. */
static void abandon(struct engine *engine, struct call *call, int64_t now_ns)
{
    struct operation *operation = call->operation;
    struct resource *resource = call->resource;
    if (resource != NULL) {
        engine->stats.undone++;
        engine_leave_line(engine, call);
    }
    call->operation = NULL;
    call_close(&engine->calls, call);
    if (operation == NULL) {
        engine_run_queue(engine, resource, now_ns);
        return;
    }
    operation->call = NULL;
    /* A release goes on, and so does an extension: it does no harm, and is asked for. A BREAK goes
     * on from when its freeze was sent: what is frozen would block everybody until it ends. */
    if (operation->round.kind == ROUND_ACQUIRE || operation->round.kind == ROUND_STATUS)
        engine_step(engine, operation,
                    &(struct round_event){.type = ROUND_EVENT_CANCEL, .now_ns = now_ns});
}

/* Of a client that leaves: those that only wait first, else the end of each round would begin one
 * for the next of them. NULL: none is left. */
static struct call *next_to_abandon(const struct engine_client *client, bool locks_only)
{
    struct call *call;
    struct call *found = NULL;
    LIST_FOREACH (call, &client->calls, of_client) {
        if (locks_only && call->resource == NULL)
            continue;
        if (call->operation == NULL)
            return call;
        found = call;
    }
    return found;
}

void engine_client_ending(struct engine *engine, struct engine_client *client, int64_t now_ns)
{
    struct call *call;
    engine_catch_up(engine, now_ns);
    while ((call = next_to_abandon(client, true)) != NULL) {
        engine->io.undone(engine->io.context, client, call_tag(call), call->tag_len);
        abandon(engine, call, now_ns);
    }
    engine_finish(engine, now_ns);
}

void engine_client_half_closed(struct engine *engine, struct engine_client *client, int64_t now_ns)
{
    engine_client_ending(engine, client, now_ns);
    engine_release_holds(engine, client, false, now_ns);
    engine_finish(engine, now_ns);
}

static void end_silently(struct engine *engine, struct engine_client *client, bool by_quit,
                         int64_t now_ns)
{
    struct call *call;
    engine_catch_up(engine, now_ns);
    while ((call = next_to_abandon(client, true)) != NULL)
        abandon(engine, call, now_ns);
    engine_release_holds(engine, client, by_quit, now_ns);
    engine_finish(engine, now_ns);
}

void engine_client_closed(struct engine *engine, struct engine_client *client, int64_t now_ns)
{
    end_silently(engine, client, false, now_ns);
}

void engine_client_quit(struct engine *engine, struct engine_client *client, int64_t now_ns)
{
    end_silently(engine, client, true, now_ns);
}

void engine_client_gone(struct engine *engine, struct engine_client *client, int64_t now_ns)
{
    struct call *call;
    engine_catch_up(engine, now_ns);
    while ((call = next_to_abandon(client, false)) != NULL)
        abandon(engine, call, now_ns);
    engine_abandon_holds(engine, client);
    engine_finish(engine, now_ns);
}
