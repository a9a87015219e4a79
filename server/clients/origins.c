#include "server/clients/origins.h"

#include <assert.h>
#include <uthash.h>

struct counted_origin {
    UT_hash_handle hh;
    struct origin origin;
    unsigned connections;
};

static void add(struct origins *origins, struct counted_origin *counted)
{
    HASH_ADD(hh, origins->by_origin, origin, sizeof(counted->origin), counted);
}

bool origins_init(struct origins *origins, size_t connections)
{
    *origins = (struct origins){0};
    if (!pool_init(&origins->pool, sizeof(struct counted_origin), connections + 1))
        return false;
    origins->sentinel = pool_take(&origins->pool);
    *origins->sentinel = (struct counted_origin){.connections = 1}; /* of no kind there is */
    add(origins, origins->sentinel);
    return true;
}

void origins_deinit(struct origins *origins)
{
    HASH_CLEAR(hh, origins->by_origin);
    pool_deinit(&origins->pool);
}

static struct counted_origin *find(const struct origins *origins, const struct origin *origin)
{
    struct counted_origin *counted;
    HASH_FIND(hh, origins->by_origin, origin, sizeof(*origin), counted);
    return counted;
}

bool origins_enter(struct origins *origins, const struct origin *origin, unsigned most)
{
    struct counted_origin *counted = find(origins, origin);
    if (counted != NULL && most != 0 && counted->connections >= most)
        return false;
    if (counted == NULL) {
        counted = pool_take(&origins->pool);
        if (counted == NULL)
            return false;
        *counted = (struct counted_origin){.origin = *origin};
        add(origins, counted);
    }
    counted->connections++;
    return true;
}

void origins_leave(struct origins *origins, const struct origin *origin)
{
    struct counted_origin *counted = find(origins, origin);
    assert(counted != NULL);
    assert(counted->connections > 0);
    if (--counted->connections > 0)
        return;
    HASH_DEL(origins->by_origin, counted);
    pool_give(&origins->pool, counted);
}
