#include "engine/locks/resource.h"

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

/* Clients choose the names, and of a function that is known they could choose many with one hash,
 * each of them searched for among all others. A seed that is not known makes that hard. */
static unsigned hash_of(const struct resources *resources, const char *name, size_t name_len)
{
    return (unsigned)XXH3_64bits_withSeed(name, name_len, resources->seed);
}

bool resources_init(struct resources *resources, size_t count, const char *prefix,
                    size_t prefix_len, uint64_t seed)
{
    *resources = (struct resources){.seed = seed, .prefix_len = prefix_len};
    assert(prefix_len <= sizeof(resources->prefix));
    memcpy(resources->prefix, prefix, prefix_len);
    if (!pool_init(&resources->pool, sizeof(struct resource), count + 1))
        return false;
    /* uthash frees its table with the last item and allocates it with the first. An item that stays
     * keeps that off the way of a request; no name is empty, so nobody finds it. */
    resources->sentinel = pool_take(&resources->pool);
    resources->sentinel->name = "";
    resources->sentinel->name_len = 0;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, resources->by_name, resources->sentinel->name, 0, 0,
                                resources->sentinel);
    return true;
}

void resources_deinit(struct resources *resources)
{
    HASH_CLEAR(hh, resources->by_name);
    pool_deinit(&resources->pool);
}

static struct resource *find(const struct resources *resources, const char *name, size_t name_len,
                             unsigned hash)
{
    struct resource *resource;
    HASH_FIND_BYHASHVALUE(hh, resources->by_name, name, name_len, hash, resource);
    return resource;
}

struct resource *resource_find(const struct resources *resources, const char *name, size_t name_len)
{
    return find(resources, name, name_len, hash_of(resources, name, name_len));
}

struct resource *resource_find_key(const struct resources *resources, const char *key,
                                   size_t key_len)
{
    size_t prefix_len = resources->prefix_len;
    if (key_len <= prefix_len || memcmp(key, resources->prefix, prefix_len) != 0)
        return NULL;
    return resource_find(resources, key + prefix_len, key_len - prefix_len);
}

/* Its key is written as a whole: the prefix, followed by the name. */
static void set_name(struct resource *resource, const struct resources *resources, const char *name,
                     size_t name_len)
{
    static_assert(sizeof(resources->prefix) + LIMIT_RESOURCE <= sizeof(resource->key_bytes),
                  "both of them fit");
    memcpy(resource->key_bytes, resources->prefix, sizeof(resources->prefix));
    memcpy(resource->key_bytes + resources->prefix_len, name, name_len);
    resource->key.bytes = resource->key_bytes;
    resource->key.len = resources->prefix_len + name_len;
    resource->name = resource->key_bytes + resources->prefix_len;
    resource->name_len = name_len;
}

struct resource *resource_take(struct resources *resources, const struct queue_rules *rules,
                               uint32_t seed, const char *name, size_t name_len)
{
    assert(name_len > 0);
    assert(name_len <= LIMIT_RESOURCE);
    unsigned hash = hash_of(resources, name, name_len);
    struct resource *resource = find(resources, name, name_len, hash);
    if (resource != NULL)
        return resource;
    resource = pool_take(&resources->pool);
    if (resource == NULL)
        return NULL;
    resource->key = (struct flight_key){0};
    queue_init(&resource->queue, rules, seed);
    resource->wake = (struct alarm){0};
    resource->acquire = NULL;
    resource->lock = NULL;
    resource->waits = 0;
    resource->kept = false;
    resource->last_outcome = OUTCOME_HELD;
    set_name(resource, resources, name, name_len);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, resources->by_name, resource->name, name_len, hash, resource);
    return resource;
}

struct resource *resource_of(const struct flight_key *key)
{
    return (struct resource *)((char *)key - offsetof(struct resource, key));
}

static bool is_known(const struct resource *resource)
{
    return resource->key.looks > 0 || !LIST_EMPTY(&resource->key.flights) ||
           resource->lock != NULL || resource->queue.length > 0 || resource->kept;
}

void resources_sweep(struct resources *resources, struct flight_keys *idle)
{
    struct flight_key *key;
    while ((key = SLIST_FIRST(idle)) != NULL) {
        struct resource *resource = resource_of(key);
        SLIST_REMOVE_HEAD(idle, of_idle);
        key->idle = false;
        if (is_known(resource))
            continue;
        assert(!resource->wake.set);
        assert(resource->waits == 0);
        HASH_DELETE(hh, resources->by_name, resource);
        pool_give(&resources->pool, resource);
    }
}

struct resource *resource_first(const struct resources *resources)
{
    return resource_next(resources->sentinel);
}

struct resource *resource_next(const struct resource *resource)
{
    return resource->hh.next;
}
