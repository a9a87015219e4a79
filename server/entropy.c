#include "server/entropy.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

/* What getentropy(3) gives at most in one call. */
enum { AT_ONCE = 256 };

void entropy_init(struct entropy *entropy)
{
    entropy->left = 0;
}

static void refill(struct entropy *entropy)
{
    for (size_t i = 0; i < sizeof(entropy->bytes); i += AT_ONCE) {
        int failed = getentropy(entropy->bytes + i, AT_ONCE);
        assert(failed == 0);
    }
    entropy->left = sizeof(entropy->bytes);
}

void entropy_fill(struct entropy *entropy, void *to, size_t len)
{
    assert(len <= AT_ONCE);
    if (entropy->left < len)
        refill(entropy);
    unsigned char *from = entropy->bytes + sizeof(entropy->bytes) - entropy->left;
    memcpy(to, from, len);
    explicit_bzero(from, len);
    entropy->left -= len;
}
