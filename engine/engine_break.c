/*
 * BREAK: a lock is released by force, in three rounds.
 *
 *     look      which token has a quorum? Not "whatever is there": that very lock is broken, and no
 *               other can come to harm
 *     freeze    a frozen token of this BREAK takes its place (protocol/token.h). With fewer than a
 *               quorum of the nodes frozen it ends here, and nothing was deleted: the frozen keys
 *               exclude everybody until the last promised deadline, as the token would
 *     release   now nobody can extend the lock: the frozen token is deleted
 *
 * It is deleted only where the node has answered the freeze. Where it has not, the freeze may still
 * come, after the lock was extended by the other nodes: then the key has to stay.
 */
#include <assert.h>
#include <string.h>

#include "engine/engine_parts.h"
#include "engine/round/node_set.h"
#include "protocol/token.h"

struct breaking {
    struct call *call;       /* between two of its rounds; NULL also if the client has left */
    bool frozen;             /* on a quorum: what is next is the release */
    char token[LIMIT_TOKEN]; /* as the look has found it: it may be frozen by another BREAK */
    char frozen_token[LIMIT_TOKEN];
    uint32_t answered;                   /* nodes that have answered the freeze ... */
    enum reason reasons[LIMIT_NODES];    /* ... and why the others have not */
    char seen[LIMIT_NODES][LIMIT_TOKEN]; /* by the look; begins with NUL if no token */
};

bool engine_break_init(struct engine *engine)
{
    return pool_init(&engine->breakings, sizeof(struct breaking), LIMIT_BREAKS);
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

/* The start of a longer value is not told from a token here, but by the freeze it is. */
static void note_seen(struct breaking *breaking, unsigned node, const struct redis_reply *reply)
{
    if (reply->kind != RESP_ARRAY || reply->item_count != 2 || reply->items[1].kind != RESP_STRING)
        return;
    const char *value = reply->items[1].str;
    size_t len = reply->items[1].len;
    if (token_is(value, len) || token_is_frozen(value, len))
        memcpy(breaking->seen[node], value, LIMIT_TOKEN);
}

void engine_break_note(struct operation *operation, unsigned node, const struct redis_reply *reply)
{
    struct breaking *breaking = operation->breaking;
    if (operation->round.kind == ROUND_STATUS)
        note_seen(breaking, node, reply);
    else if (operation->round.kind == ROUND_FREEZE &&
             redis_answer(REDIS_FREEZE, reply).kind != ANSWER_FAILED)
        breaking->answered |= nodes_only(node);
}

/* The lock that a quorum has, of the nodes whose votes count: its token, or a frozen one where no
 * node has shown the token. */
static const char *find_token(const struct breaking *breaking, const struct round *round)
{
    for (unsigned i = 0; i < round->rules->node_count; i++) {
        const char *token = breaking->seen[i];
        unsigned same = 0;
        if (token[0] == '\0')
            continue;
        for (unsigned j = 0; j < round->rules->node_count; j++) {
            const char *other = breaking->seen[j];
            if (!(round->held & nodes_only(j)) || other[0] == '\0' ||
                !token_same_lock(breaking->seen[i], other))
                continue;
            same++;
            if (token_is(other, LIMIT_TOKEN))
                token = other;
        }
        if (same >= round->rules->quorum)
            return token;
    }
    return NULL;
}

/* Its client has not been told yet whether it is granted: there is nothing to break, and to delete
 * it now would make a lie of a grant that is about to be told. */
static bool is_being_granted(const struct resource *resource, const char *token)
{
    const struct operation *operation;
    LIST_FOREACH (operation, &resource->operations, of_resource)
        if (operation->round.kind == ROUND_ACQUIRE &&
            (operation->round.phase != ROUND_SETTLED || operation->settled) &&
            token_same_lock(operation->token, token))
            return true;
    return false;
}

/* --- what its rounds come to --- */

/* Each returns whether it goes on; if not, it has answered the call. */

static bool on_looked(struct engine *engine, struct operation *look, struct call *call,
                      int64_t now_ns)
{
    const struct round *round = &look->round;
    struct breaking *breaking = look->breaking;
    const char *token = round->outcome == OUTCOME_HELD ? find_token(breaking, round) : NULL;
    /* If the client has left by now, its lock is not broken. */
    if (call == NULL || token == NULL || is_being_granted(look->resource, token)) {
        answer_round(engine, call, round, round->outcome, now_ns);
        return false;
    }
    memcpy(breaking->token, token, LIMIT_TOKEN);
    return true;
}

static bool on_frozen(struct engine *engine, struct operation *freeze, struct call *call,
                      int64_t now_ns)
{
    const struct round *round = &freeze->round;
    struct breaking *breaking = freeze->breaking;
    enum outcome outcome = round->outcome;
    if (outcome == OUTCOME_OK) {
        memcpy(breaking->reasons, round->reasons, sizeof(breaking->reasons));
        breaking->frozen = true;
        return true;
    }
    /* It was gone by then: given back, or in other hands; those that are silent may be, too. */
    if (outcome == OUTCOME_GONE) {
        unsigned quorum = round->rules->quorum;
        outcome = OUTCOME_FREE;
        if (nodes_count(round->held | round->failed) >= quorum)
            outcome = nodes_count(round->held) >= quorum ? OUTCOME_HELD : OUTCOME_NOQUORUM;
    }
    answer_round(engine, call, round, outcome, now_ns);
    return false;
}

/* No quorum is known to be free of it: some have not answered, and on some another BREAK has put a
 * frozen token of its own. */
static bool may_be_there(const struct round *round, const char *token)
{
    const struct round_rules *rules = round->rules;
    unsigned count = nodes_count(round->failed | round->pending);
    for (unsigned i = 0; i < rules->node_count; i++)
        count += (round->held & nodes_only(i)) != 0 &&
                 round->held_by[i] == redis_holder(token, LIMIT_TOKEN);
    return count > rules->node_count - rules->quorum;
}

static bool on_released(struct engine *engine, struct operation *release, struct call *call,
                        int64_t now_ns)
{
    const struct round *round = &release->round;
    enum outcome outcome = round->outcome;
    /* A quorum was frozen. What is not there any more has come to its end since then. */
    if (outcome == OUTCOME_GONE)
        outcome = may_be_there(round, release->token) ? OUTCOME_NOQUORUM : OUTCOME_OK;
    answer_round(engine, call, round, outcome, now_ns);
    return false;
}

struct breaking *engine_break_on_settled(struct engine *engine, struct operation *operation,
                                         int64_t now_ns)
{
    struct breaking *breaking = operation->breaking;
    struct call *call = operation->call;
    bool goes_on = false;
    operation->call = NULL;
    if (call != NULL)
        call->operation = NULL;
    switch (operation->round.kind) {
    case ROUND_STATUS:
        goes_on = on_looked(engine, operation, call, now_ns);
        break;
    case ROUND_FREEZE:
        goes_on = on_frozen(engine, operation, call, now_ns);
        break;
    case ROUND_RELEASE:
        goes_on = on_released(engine, operation, call, now_ns);
        break;
    case ROUND_ACQUIRE:
    case ROUND_EXTEND:
        assert(false && "no round of a BREAK");
    }
    operation->breaking = NULL;
    if (!goes_on) {
        pool_give(&engine->breakings, breaking);
        return NULL;
    }
    breaking->call = call;
    return breaking;
}

/* --- its second round, and its third --- */

/* The next round, for the call. NULL if there is no room for it. */
static struct operation *open_round(struct engine *engine, struct resource *resource,
                                    struct breaking *breaking, enum round_kind kind)
{
    struct operation *operation =
        operation_open(&engine->operations, resource, &engine->rules.round, kind, 0);
    if (operation == NULL)
        return NULL;
    memcpy(operation->token, breaking->frozen_token, LIMIT_TOKEN);
    operation->breaking = breaking;
    if (breaking->call != NULL)
        operation_set_call(operation, breaking->call);
    breaking->call = NULL;
    return operation;
}

static void refuse(struct engine *engine, struct breaking *breaking)
{
    answer(engine, breaking->call,
           &(struct reply){.outcome = OUTCOME_LIMIT, .limit = "operations"});
    pool_give(&engine->breakings, breaking);
}

/* The lock that this daemon knows of, if it is that one. */
static const struct lock *known_lock(const struct resource *resource, const char *token)
{
    const struct lock *lock = resource->lock;
    return lock != NULL && token_same_lock(lock->token, token) ? lock : NULL;
}

static struct engine_broken describe(const struct resource *resource, const char *token)
{
    const struct lock *lock = known_lock(resource, token);
    return (struct engine_broken){
        .resource = resource->name,
        .resource_len = resource->name_len,
        .token = lock != NULL ? lock->token : token,
        .owner_id = lock != NULL ? lock->client_id : 0,
        .owner_label = lock != NULL ? lock->client_label : "",
    };
}

void engine_freeze_token(struct engine *engine, const char *token, char *frozen)
{
    unsigned char fresh[TOKEN_FRESH_BYTES];
    engine->io.entropy(engine->io.context, fresh, sizeof(fresh));
    token_freeze(token, fresh, frozen);
}

static void freeze(struct engine *engine, struct resource *resource, struct breaking *breaking,
                   int64_t now_ns)
{
    engine_freeze_token(engine, breaking->token, breaking->frozen_token);
    struct operation *operation = open_round(engine, resource, breaking, ROUND_FREEZE);
    if (operation == NULL) {
        refuse(engine, breaking);
        return;
    }
    const struct engine_broken broken = describe(resource, breaking->token);
    engine->io.breaking(engine->io.context, operation->call->client, &broken);
    engine_start(engine, operation, now_ns);
}

/* There is no room for a round: the nodes are owed the release. */
static void owe(struct engine *engine, const struct resource *resource,
                const struct breaking *breaking, int64_t now_ns)
{
    for (uint32_t rest = breaking->answered; rest != 0; rest = nodes_behind_first(rest))
        link_owe(&engine->links[nodes_first(rest)], resource->key, resource->key_len,
                 breaking->frozen_token, now_ns);
}

static void release(struct engine *engine, struct resource *resource, struct breaking *breaking,
                    int64_t now_ns)
{
    char token[LIMIT_TOKEN];
    const struct engine_broken broken = describe(resource, breaking->token);
    engine->stats.broken++;
    if (engine->io.broken != NULL)
        engine->io.broken(engine->io.context, &broken);
    memcpy(token, broken.token, LIMIT_TOKEN);
    engine_forbid_planting(engine, resource, token, now_ns);
    /* If a connection holds it, that client is told, also if it is the one that breaks it. */
    engine_end_lock(engine, resource, token, NULL);
    struct operation *operation = open_round(engine, resource, breaking, ROUND_RELEASE);
    if (operation != NULL) {
        engine_start(engine, operation, now_ns);
        return;
    }
    owe(engine, resource, breaking, now_ns);
    refuse(engine, breaking);
}

void engine_break_go_on(struct engine *engine, struct resource *resource, struct breaking *breaking,
                        int64_t now_ns)
{
    if (breaking->frozen)
        release(engine, resource, breaking, now_ns);
    else
        freeze(engine, resource, breaking, now_ns);
}

enum reason engine_break_spares(const struct operation *release, unsigned node)
{
    const struct breaking *breaking = release->breaking;
    if (breaking == NULL || (breaking->answered & nodes_only(node)))
        return REASON_NONE;
    assert(breaking->reasons[node] != REASON_NONE);
    return breaking->reasons[node];
}
