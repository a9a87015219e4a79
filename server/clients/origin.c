#include "server/clients/origin.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct counted_origin {
    UT_hash_handle hh;
    struct origin origin;
    unsigned connections;
};

static struct origin make(char kind, const void *bytes, size_t len)
{
    struct origin origin = {{(unsigned char)kind}};
    memcpy(origin.bytes + 1, bytes, len);
    return origin;
}

struct origin origin_of_ipv4(const void *address)
{
    return make('4', address, 4);
}

struct origin origin_of_ipv6(const void *address)
{
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const unsigned char *bytes = address;
    if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
        return origin_of_ipv4(bytes + sizeof(mapped));
    return make('6', bytes, 8);
}

struct origin origin_of_user(uint32_t uid)
{
    return make('u', &uid, sizeof(uid));
}

static struct counted_origin *find(struct counted_origin *origins, const struct origin *origin)
{
    struct counted_origin *counted;
    HASH_FIND(hh, origins, origin, sizeof(*origin), counted);
    return counted;
}

static struct counted_origin *add(struct counted_origin **origins, const struct origin *origin)
{
    struct counted_origin *counted = calloc(1, sizeof(*counted));
    if (counted == NULL)
        return NULL;
    counted->origin = *origin;
    HASH_ADD(hh, *origins, origin, sizeof(*origin), counted);
    if (counted->hh.tbl != NULL)
        return counted;
    free(counted);
    return NULL;
}

bool origins_enter(struct counted_origin **origins, const struct origin *origin, unsigned most)
{
    struct counted_origin *counted = find(*origins, origin);
    if (counted != NULL && most != 0 && counted->connections >= most)
        return false;
    if (counted == NULL)
        counted = add(origins, origin);
    if (counted != NULL)
        counted->connections++;
    return counted != NULL;
}

void origins_leave(struct counted_origin **origins, const struct origin *origin)
{
    struct counted_origin *counted = find(*origins, origin);
    assert(counted != NULL);
    assert(counted->connections > 0);
    if (--counted->connections > 0)
        return;
    HASH_DEL(*origins, counted);
    free(counted);
}
