#include "engine/locks/resource.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* xxhash.h contains the whole implementation, so no library is linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Enough to keep the chains short with the largest number of locks. Memory of chains that are never
 * used is never touched. */
enum { CHAINS = 65536 };

/* Clients choose the names. If they knew the hash function, they could choose many names with the
 * same hash, which would make one chain long. The secret seed makes that hard. */
static struct resource_chain *chain_of_name(const struct resources *resources, const char *name,
                                            size_t name_len)
{
    return &resources->chains[XXH3_64bits_withSeed(name, name_len, resources->seed) % CHAINS];
}

bool resources_init(struct resources *resources, size_t count, const char *prefix,
                    size_t prefix_len, uint64_t seed)
{
    *resources = (struct resources){.seed = seed, .prefix_len = prefix_len};
    assert(prefix_len <= sizeof(resources->prefix));
    memcpy(resources->prefix, prefix, prefix_len);
    TAILQ_INIT(&resources->all);
    resources->chains = calloc(CHAINS, sizeof(*resources->chains));
    return pool_init(&resources->pool, sizeof(struct resource), count) && resources->chains != NULL;
}

void resources_deinit(struct resources *resources)
{
    free(resources->chains);
    pool_deinit(&resources->pool);
}

static struct resource *find_in_chain(const struct resource_chain *chain, const char *name,
                                      size_t name_len)
{
    struct resource *resource;
    LIST_FOREACH (resource, chain, of_chain)
        if (resource->name_len == name_len && memcmp(resource->name, name, name_len) == 0)
            return resource;
    return NULL;
}

struct resource *resource_find(const struct resources *resources, const char *name, size_t name_len)
{
    return find_in_chain(chain_of_name(resources, name, name_len), name, name_len);
}

struct resource *resource_find_key(const struct resources *resources, const char *key,
                                   size_t key_len)
{
    size_t prefix_len = resources->prefix_len;
    if (key_len <= prefix_len || memcmp(key, resources->prefix, prefix_len) != 0)
        return NULL;
    return resource_find(resources, key + prefix_len, key_len - prefix_len);
}

/* Write the key, which is the prefix followed by the name. */
static void set_name(struct resource *resource, const struct resources *resources, const char *name,
                     size_t name_len)
{
    static_assert(sizeof(resources->prefix) + LIMIT_RESOURCE <= sizeof(resource->key_bytes),
                  "prefix and name fit");
    memcpy(resource->key_bytes, resources->prefix, sizeof(resources->prefix));
    memcpy(resource->key_bytes + resources->prefix_len, name, name_len);
    resource->key.bytes = resource->key_bytes;
    resource->key.len = resources->prefix_len + name_len;
    resource->name = resource->key_bytes + resources->prefix_len;
    resource->name_len = name_len;
}

struct resource *resource_take(struct resources *resources, const struct engine_rules *rules,
                               uint32_t seed, const char *name, size_t name_len)
{
    assert(name_len > 0);
    assert(name_len <= LIMIT_RESOURCE);
    struct resource_chain *chain = chain_of_name(resources, name, name_len);
    struct resource *resource = find_in_chain(chain, name, name_len);
    if (resource != NULL)
        return resource;
    resource = pool_take(&resources->pool);
    if (resource == NULL)
        return NULL;
    resource->key = (struct flight_key){0};
    queue_init(&resource->queue, rules, seed);
    resource->wake = (struct timer){0};
    resource->acquire = NULL;
    resource->lock = NULL;
    resource->waits = resource->impatient = 0;
    resource->seeker = NULL;
    resource->semaphore = NULL;
    resource->kept = false;
    resource->last_outcome = OUTCOME_HELD;
    set_name(resource, resources, name, name_len);
    LIST_INSERT_HEAD(chain, resource, of_chain);
    TAILQ_INSERT_TAIL(&resources->all, resource, of_all);
    return resource;
}

struct resource *resource_of(const struct flight_key *key)
{
    return (struct resource *)((char *)key - offsetof(struct resource, key));
}

static bool is_in_use(const struct resource *resource)
{
    return resource->key.key_probes > 0 || !LIST_EMPTY(&resource->key.flights) ||
           resource->lock != NULL || resource->queue.length > 0 || resource->kept ||
           resource->semaphore != NULL;
}

void resources_sweep(struct resources *resources, struct flight_keys *idle)
{
    struct flight_key *key;
    while ((key = SLIST_FIRST(idle)) != NULL) {
        struct resource *resource = resource_of(key);
        SLIST_REMOVE_HEAD(idle, of_idle);
        key->idle = false;
        if (is_in_use(resource))
            continue;
        assert(!resource->wake.set);
        assert(resource->waits == 0);
        assert(resource->impatient == 0);
        LIST_REMOVE(resource, of_chain);
        TAILQ_REMOVE(&resources->all, resource, of_all);
        pool_give(&resources->pool, resource);
    }
}
