#include "server/entropy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

void entropy_init(struct entropy *entropy)
{
    entropy->left = 0;
}

static void refill(struct entropy *entropy)
{
    size_t got = 0;
    while (got < sizeof(entropy->bytes)) {
        ssize_t more = getrandom(entropy->bytes + got, sizeof(entropy->bytes) - got, 0);
        assert(more > 0 || errno == EINTR);
        got += more > 0 ? (size_t)more : 0;
    }
    entropy->left = sizeof(entropy->bytes);
}

void entropy_fill(struct entropy *entropy, void *to, size_t len)
{
    assert(len <= sizeof(entropy->bytes));
    if (entropy->left < len)
        refill(entropy);
    unsigned char *from = entropy->bytes + sizeof(entropy->bytes) - entropy->left;
    memcpy(to, from, len);
    explicit_bzero(from, len);
    entropy->left -= len;
}
