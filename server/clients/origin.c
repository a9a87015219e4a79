#include "server/clients/origin.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* The origin comes first: the tree of tsearch(3) is searched by it. */
struct counted_origin {
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

static int compare(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(struct origin));
}

static struct counted_origin *add(void **origins, const struct origin *origin)
{
    struct counted_origin *counted = calloc(1, sizeof(*counted));
    if (counted == NULL)
        return NULL;
    counted->origin = *origin;
    if (tsearch(counted, origins, compare) != NULL)
        return counted;
    free(counted);
    return NULL;
}

bool origins_enter(void **origins, const struct origin *origin, unsigned most)
{
    struct counted_origin **found = tfind(origin, origins, compare);
    struct counted_origin *counted = found != NULL ? *found : add(origins, origin);
    if (counted == NULL || (most != 0 && counted->connections >= most))
        return false;
    counted->connections++;
    return true;
}

void origins_leave(void **origins, const struct origin *origin)
{
    struct counted_origin **found = tfind(origin, origins, compare);
    assert(found != NULL);
    struct counted_origin *counted = *found;
    assert(counted->connections > 0);
    if (--counted->connections > 0)
        return;
    tdelete(origin, origins, compare);
    free(counted);
}
