#include "server/clients/origin.h"

#include <stddef.h>
#include <string.h>

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
