#include "server/operation.h"

#include <assert.h>
#include <string.h>
#include <uthash.h>

/* A key somebody is busy with, and the operations on it. */
struct resource {
    UT_hash_handle hh;
    LIST_HEAD(, operation) operations;
    size_t key_len;
    char key[LIMIT_KEY]; /* with its prefix */
};

bool operations_init(struct operations *operations)
{
    *operations = (struct operations){0};
    TAILQ_INIT(&operations->waiting);
    if (!pool_init(&operations->pool, sizeof(struct operation), LIMIT_OPERATIONS) ||
        !pool_init(&operations->resources, sizeof(struct resource), LIMIT_OPERATIONS + 1))
        return false;
    /* uthash frees its table with the last item and allocates it with the first. An item that stays
     * keeps that off the way of a request; no key is empty, so nobody finds it. */
    operations->sentinel = pool_take(&operations->resources);
    operations->sentinel->key_len = 0;
    HASH_ADD_KEYPTR(hh, operations->by_key, operations->sentinel->key, 0, operations->sentinel);
    return true;
}

void operations_deinit(struct operations *operations)
{
    HASH_CLEAR(hh, operations->by_key);
    pool_deinit(&operations->pool);
    pool_deinit(&operations->resources);
}

struct operation *operation_open(struct operations *operations, struct engine_client *client,
                                 const struct round_rules *rules, enum round_kind kind,
                                 int64_t ttl_ns, int64_t received_ns)
{
    struct operation *operation = pool_take(&operations->pool);
    if (operation == NULL)
        return NULL;
    round_init(&operation->round, rules, kind, ttl_ns);
    operation->received_ns = received_ns;
    operation->ballot = 0;
    operation->client = client;
    LIST_INSERT_HEAD(&client->operations, operation, of_client);
    client->operation_count++;
    /* All rounds have the same time, so the order of their starts is that of their deadlines. */
    TAILQ_INSERT_TAIL(&operations->waiting, operation, waiting);
    return operation;
}

void operation_set_tag(struct operation *operation, const char *tag, size_t tag_len)
{
    operation->tagged = tag != NULL;
    operation->tag_len = tag_len;
    memcpy(operation->tag, tag != NULL ? tag : "", tag_len);
}

static struct resource *take_resource(struct operations *operations, const char *key,
                                      size_t key_len)
{
    struct resource *resource;
    assert(key_len <= sizeof(resource->key));
    HASH_FIND(hh, operations->by_key, key, key_len, resource);
    if (resource != NULL)
        return resource;
    resource = pool_take(&operations->resources);
    assert(resource != NULL); /* there are as many as operations */
    LIST_INIT(&resource->operations);
    resource->key_len = key_len;
    memcpy(resource->key, key, key_len);
    HASH_ADD_KEYPTR(hh, operations->by_key, resource->key, key_len, resource);
    return resource;
}

static void join_resource(struct operation *operation, struct resource *resource)
{
    operation->resource = resource;
    LIST_INSERT_HEAD(&resource->operations, operation, of_resource);
}

void operation_set_key(struct operations *operations, struct operation *operation, const char *key,
                       size_t key_len)
{
    join_resource(operation, take_resource(operations, key, key_len));
}

void operation_set_resource(struct operation *operation, const struct operation *other)
{
    join_resource(operation, other->resource);
}

void operation_leave_client(struct operation *operation)
{
    if (operation->client == NULL)
        return;
    LIST_REMOVE(operation, of_client);
    operation->client->operation_count--;
    operation->client = NULL;
}

void operation_free(struct operations *operations, struct operation *operation)
{
    assert(operation->client == NULL);
    struct resource *resource = operation->resource;
    LIST_REMOVE(operation, of_resource);
    if (LIST_EMPTY(&resource->operations)) {
        HASH_DELETE(hh, operations->by_key, resource);
        pool_give(&operations->resources, resource);
    }
    pool_give(&operations->pool, operation);
}

struct operation *operation_first_of(const struct operation *operation)
{
    return LIST_FIRST(&operation->resource->operations);
}

enum redis_command operation_command(const struct operation *operation, enum round_command command)
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

bool operation_is_release(const struct operation *operation, enum round_command command)
{
    return operation_command(operation, command) == REDIS_RELEASE;
}

bool operation_is_vote(const struct operation *operation, enum round_command command)
{
    return command == ROUND_VOTE && operation->round.kind != ROUND_RELEASE;
}

const char *operation_key(const struct operation *operation, size_t *key_len)
{
    *key_len = operation->resource->key_len;
    return operation->resource->key;
}
