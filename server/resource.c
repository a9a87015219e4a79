#include "server/resource.h"

#include <assert.h>
#include <string.h>

/* All of it in headers: nothing to be linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

/* As many as are under way in one pass of a busy daemon, so that nobody is searched for in a chain,
 * and the table rarely has to grow. */
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_INITIAL_NUM_BUCKETS      1024U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 10U
#define HASH_BKT_CAPACITY_THRESH      5U

/* Clients choose the keys, and of a function that is known they could choose many with one hash,
 * each of them searched for among all others. A seed that is not known makes that hard. */
static unsigned hash_of(const struct resources *resources, const char *key, size_t key_len)
{
    return (unsigned)XXH3_64bits_withSeed(key, key_len, resources->seed);
}

bool resources_init(struct resources *resources, size_t count, uint64_t seed)
{
    *resources = (struct resources){.seed = seed};
    if (!pool_init(&resources->pool, sizeof(struct resource), count + 1))
        return false;
    /* uthash frees its table with the last item and allocates it with the first. An item that stays
     * keeps that off the way of a request; no key is empty, so nobody finds it. */
    resources->sentinel = pool_take(&resources->pool);
    resources->sentinel->key_len = 0;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, resources->by_key, resources->sentinel->key, 0, 0,
                                resources->sentinel);
    return true;
}

void resources_deinit(struct resources *resources)
{
    HASH_CLEAR(hh, resources->by_key);
    pool_deinit(&resources->pool);
}

static struct resource *find(const struct resources *resources, const char *key, size_t key_len,
                             unsigned hash)
{
    struct resource *resource;
    HASH_FIND_BYHASHVALUE(hh, resources->by_key, key, key_len, hash, resource);
    return resource;
}

struct resource *resource_find(const struct resources *resources, const char *key, size_t key_len)
{
    return find(resources, key, key_len, hash_of(resources, key, key_len));
}

struct resource *resource_take(struct resources *resources, const struct queue_rules *rules,
                               uint32_t seed, const char *key, size_t key_len)
{
    assert(key_len > 0);
    assert(key_len <= LIMIT_KEY);
    unsigned hash = hash_of(resources, key, key_len);
    struct resource *resource = find(resources, key, key_len, hash);
    if (resource != NULL)
        return resource;
    resource = pool_take(&resources->pool);
    if (resource == NULL)
        return NULL;
    LIST_INIT(&resource->operations);
    queue_init(&resource->queue, rules, seed);
    resource->wake = (struct alarm){0};
    resource->asking = NULL;
    resource->lock = NULL;
    resource->waits = 0;
    resource->gathered = false;
    resource->pins = 0;
    resource->last_outcome = OUTCOME_HELD;
    resource->key_len = key_len;
    memcpy(resource->key, key, key_len);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, resources->by_key, resource->key, key_len, hash, resource);
    return resource;
}

void resource_pin(struct resource *resource)
{
    resource->pins++;
}

void resource_unpin(struct resources *resources, struct resource *resource)
{
    assert(resource->pins > 0);
    resource->pins--;
    resource_release(resources, resource);
}

void resource_release(struct resources *resources, struct resource *resource)
{
    if (resource->pins > 0 || !LIST_EMPTY(&resource->operations) || resource->lock != NULL ||
        resource->queue.length > 0)
        return;
    assert(!resource->wake.set);
    assert(resource->waits == 0);
    HASH_DELETE(hh, resources->by_key, resource);
    pool_give(&resources->pool, resource);
}

struct resource *resource_first(const struct resources *resources)
{
    return resource_next(resources->sentinel);
}

struct resource *resource_next(const struct resource *resource)
{
    return resource->hh.next;
}
