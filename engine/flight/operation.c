#include "engine/flight/operation.h"

#include <assert.h>
#include <string.h>

bool operations_init(struct operations *operations)
{
    *operations = (struct operations){0};
    TAILQ_INIT(&operations->waiting);
    TAILQ_INIT(&operations->settled);
    return pool_init(&operations->pool, sizeof(struct operation), LIMIT_OPERATIONS);
}

void operations_deinit(struct operations *operations)
{
    pool_deinit(&operations->pool);
}

static_assert(offsetof(struct operation, together) == 0, "as links find the next of a run");
static_assert(offsetof(struct operation, round.phase) < POOL_LINE, "a vote takes one line");
static_assert(offsetof(struct operation, round.ballot_seen) <= 2 * POOL_LINE,
              "... and most rounds two");

static const enum redis_command commands[] = {
    [ROUND_ACQUIRE] = REDIS_ACQUIRE, [ROUND_EXTEND] = REDIS_EXTEND, [ROUND_RELEASE] = REDIS_RELEASE,
    [ROUND_STATUS] = REDIS_STATUS,   [ROUND_FREEZE] = REDIS_FREEZE,
};

struct operation *operation_open(struct operations *operations, struct resource *resource,
                                 const struct round_rules *rules, enum round_kind kind,
                                 int64_t ttl_ns)
{
    struct operation *operation = pool_take(&operations->pool);
    if (operation == NULL)
        return NULL;
    round_init(&operation->round, rules, kind, ttl_ns);
    operation->asks_by = commands[kind];
    operation->resource = resource;
    operation->call = NULL;
    operation->renews = NULL;
    operation->of_daemon = false;
    operation->settled = false;
    operation->backfill = 0;
    operation->breaking = NULL;
    operation->partner = NULL;
    operation->shared_on = 0;
    operation->gathered_for = 0;
    operation->together = NULL;
    operation->ballot = 0;
    LIST_INSERT_HEAD(&resource->operations, operation, of_resource);
    /* All rounds have the same time, so the order of their starts is that of their deadlines. */
    TAILQ_INSERT_TAIL(&operations->waiting, operation, of_list);
    return operation;
}

void operation_set_call(struct operation *operation, struct call *call)
{
    assert(call->operation == NULL);
    operation->call = call;
    call->operation = operation;
}

void operation_free(struct operations *operations, struct operation *operation)
{
    assert(!operation->settled);
    assert(operation->call == NULL);
    assert(operation->renews == NULL);
    assert(operation->breaking == NULL);
    assert(operation->gathered_for == 0);
    if (operation->partner != NULL)
        operation->partner->partner = NULL;
    LIST_REMOVE(operation, of_resource);
    pool_give(&operations->pool, operation);
}

enum redis_command operation_command(const struct operation *operation, enum round_command command)
{
    switch (command) {
    case ROUND_VOTE:
        return operation->asks_by;
    case ROUND_UNDO:
        return REDIS_RELEASE;
    case ROUND_PLANT:
        return REDIS_PLANT;
    case ROUND_COMMANDS:
        break;
    }
    assert(false && "no command");
    return REDIS_STATUS;
}

bool operation_is_release(const struct operation *operation, enum round_command command)
{
    return operation_command(operation, command) == REDIS_RELEASE;
}

bool operation_is_vote(const struct operation *operation, enum round_command command)
{
    return command == ROUND_VOTE && operation->asks_by != REDIS_RELEASE;
}

bool operation_is_swap(const struct operation *operation, enum round_command command)
{
    return operation_command(operation, command) == REDIS_SWAP;
}
