#include "server/clients/client_address.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* The address is the first field, because compare() gets pointers to entries and to addresses. */
struct counted_address {
    struct client_address client_address;
    unsigned connections;
};

static struct client_address make(char kind, const void *bytes, size_t len)
{
    struct client_address client_address = {{(unsigned char)kind}};
    memcpy(client_address.bytes + 1, bytes, len);
    return client_address;
}

struct client_address client_address_of_ipv4(const void *address)
{
    return make('4', address, 4);
}

struct client_address client_address_of_ipv6(const void *address)
{
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const unsigned char *bytes = address;
    if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
        return client_address_of_ipv4(bytes + sizeof(mapped));
    return make('6', bytes, 8);
}

struct client_address client_address_of_user(uint32_t uid)
{
    return make('u', &uid, sizeof(uid));
}

static int compare(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(struct client_address));
}

static struct counted_address *add(void **address_counts,
                                   const struct client_address *client_address)
{
    struct counted_address *counted = calloc(1, sizeof(*counted));
    if (counted == NULL)
        return NULL;
    counted->client_address = *client_address;
    if (tsearch(counted, address_counts, compare) != NULL)
        return counted;
    free(counted);
    return NULL;
}

enum address_count address_counts_enter(void **address_counts,
                                        const struct client_address *client_address, unsigned most)
{
    struct counted_address **found = tfind(client_address, address_counts, compare);
    struct counted_address *counted = found != NULL ? *found : add(address_counts, client_address);
    if (counted == NULL)
        return ADDRESS_NO_MEMORY;
    if (most != 0 && counted->connections >= most)
        return ADDRESS_FULL;
    counted->connections++;
    return ADDRESS_COUNTED;
}

void address_counts_leave(void **address_counts, const struct client_address *client_address)
{
    struct counted_address **found = tfind(client_address, address_counts, compare);
    assert(found != NULL);
    struct counted_address *counted = *found;
    assert(counted->connections > 0);
    if (--counted->connections > 0)
        return;
    tdelete(client_address, address_counts, compare);
    free(counted);
}
