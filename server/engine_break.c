/*
 * BREAK: a lock is released by force. Not "whatever is there": first a round asks which token a
 * quorum has, then that very token is released, as by UNLOCK, and no other can come to harm.
 */
#include <assert.h>
#include <string.h>

#include "protocol/nodes.h"
#include "server/engine_parts.h"

struct breaking {
    struct call *call; /* between its two rounds */
    char token[LIMIT_TOKEN];
    char seen[LIMIT_NODES][LIMIT_TOKEN]; /* what each node has said; begins with NUL if no token */
};

bool engine_break_init(struct engine *engine)
{
    return pool_init(&engine->breakings, sizeof(struct breaking), LIMIT_BREAKS);
}

static bool is_token(const char *value, size_t len)
{
    if (len != LIMIT_TOKEN)
        return false;
    for (size_t i = 0; i < len; i++)
        if (memchr("0123456789abcdef", value[i], 16) == NULL)
            return false;
    return true;
}

/* It is not counted among the outcomes: these are of requests for locks. */
static void answer(struct engine *engine, struct call *call, const struct reply *reply)
{
    if (call != NULL)
        engine_say(engine, call, reply);
}

static void answer_round(struct engine *engine, struct call *call, const struct round *round,
                         enum outcome outcome, int64_t now_ns)
{
    const struct reply reply = {
        .outcome = outcome,
        .hint_ms = outcome == OUTCOME_HELD ? round_hint_ms(round, now_ns) : -1,
        .voting = round_voting(round),
        .quorum = round->rules->quorum,
        .node_count = engine->node_count,
        .node_names = engine->rules.node_names,
        .node_reasons = round->reasons,
    };
    answer(engine, call, &reply);
}

bool engine_break(struct engine *engine, struct operation *look)
{
    assert(look->round.kind == ROUND_STATUS);
    look->breaking = pool_take(&engine->breakings);
    if (look->breaking == NULL)
        return false;
    memset(look->breaking, 0, sizeof(*look->breaking));
    return true;
}

void engine_break_note(struct operation *look, unsigned node, const struct redis_reply *reply)
{
    /* The start of a longer value is not told from a token here, but by the release it is. */
    if (look->round.kind == ROUND_STATUS && reply->kind == RESP_ARRAY && reply->item_count == 2 &&
        reply->items[1].kind == RESP_STRING && is_token(reply->items[1].str, reply->items[1].len))
        memcpy(look->breaking->seen[node], reply->items[1].str, LIMIT_TOKEN);
}

/* The token that a quorum has, of the nodes whose votes count. */
static const char *find_token(const struct breaking *breaking, const struct round *round)
{
    for (unsigned i = 0; i < round->rules->node_count; i++) {
        unsigned same = 0;
        for (unsigned j = 0; j < round->rules->node_count; j++)
            same += (round->held & nodes_only(j)) != 0 &&
                    memcmp(breaking->seen[i], breaking->seen[j], LIMIT_TOKEN) == 0;
        if (breaking->seen[i][0] != '\0' && same >= round->rules->quorum)
            return breaking->seen[i];
    }
    return NULL;
}

/* Its client has not been told yet whether it is granted: there is nothing to break, and to delete
 * it now would make a lie of a grant that is about to be told. */
static bool is_being_granted(const struct resource *resource, const char *token)
{
    const struct operation *operation;
    LIST_FOREACH (operation, &resource->operations, of_resource)
        if (operation->round.kind == ROUND_ACQUIRE && operation->round.phase != ROUND_SETTLED &&
            memcmp(operation->token, token, LIMIT_TOKEN) == 0)
            return true;
    return false;
}

static struct breaking *end(struct engine *engine, struct operation *operation)
{
    struct breaking *breaking = operation->breaking;
    operation->breaking = NULL;
    pool_give(&engine->breakings, breaking);
    return NULL;
}

struct breaking *engine_break_on_looked(struct engine *engine, struct operation *look,
                                        int64_t now_ns)
{
    const struct round *round = &look->round;
    struct breaking *breaking = look->breaking;
    struct call *call = look->call;
    look->call = NULL;
    if (call != NULL)
        call->operation = NULL;
    const char *token = round->outcome == OUTCOME_HELD ? find_token(breaking, round) : NULL;
    /* Whose client has left has not had it broken. */
    if (call == NULL || token == NULL || is_being_granted(look->resource, token)) {
        answer_round(engine, call, round, round->outcome, now_ns);
        return end(engine, look);
    }
    memcpy(breaking->token, token, LIMIT_TOKEN);
    breaking->call = call;
    look->breaking = NULL;
    return breaking;
}

static void tell(struct engine *engine, const struct engine_client *by,
                 const struct resource *resource, const char *token)
{
    const struct lock *lock = resource->lock;
    bool known = lock != NULL && memcmp(lock->token, token, LIMIT_TOKEN) == 0;
    engine->stats.broken++;
    engine->io.breaking(engine->io.context, by,
                        &(struct engine_broken){
                            .resource = resource->name,
                            .resource_len = resource->name_len,
                            .token = token,
                            .owner_id = known ? lock->client_id : 0,
                            .owner_label = known ? lock->client_label : "",
                        });
}

void engine_break_release(struct engine *engine, struct resource *resource,
                          struct breaking *breaking, int64_t now_ns)
{
    struct call *call = breaking->call;
    struct operation *release =
        operation_open(&engine->operations, resource, &engine->rules.round, ROUND_RELEASE, 0);
    if (release == NULL) {
        pool_give(&engine->breakings, breaking);
        answer(engine, call, &(struct reply){.outcome = OUTCOME_LIMIT, .limit = "operations"});
        return;
    }
    breaking->call = NULL;
    release->breaking = breaking;
    operation_set_call(release, call);
    tell(engine, call->client, resource, breaking->token);
    /* Where it cannot be released at once it will be later, and must not be prolonged till then. */
    extensions_end(&engine->extensions, breaking->token, now_ns);
    /* Who holds it for its connection is told, also if that is the one that breaks it. */
    bool known = engine_end_lock(engine, resource, breaking->token, NULL);
    engine_release(engine, resource, breaking->token, release, known, now_ns);
}

void engine_break_on_released(struct engine *engine, struct operation *release, int64_t now_ns)
{
    const struct round *round = &release->round;
    enum outcome outcome = round->outcome;
    struct call *call = release->call;
    release->call = NULL;
    if (call != NULL)
        call->operation = NULL;
    /* It was gone by then: given back, or in other hands. */
    if (outcome == OUTCOME_GONE)
        outcome = nodes_count(round->held) >= round->rules->quorum ? OUTCOME_HELD : OUTCOME_FREE;
    answer_round(engine, call, round, outcome, now_ns);
    end(engine, release);
}
