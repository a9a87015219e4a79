#include "server/entropy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

enum { BYTES = 2 * ENTROPY_MAX - sizeof(size_t) };

struct entropy_pool {
    size_t left; /* unused ones, at the end; 0 in a child of fork() */
    unsigned char bytes[BYTES];
};

bool entropy_init(struct entropy *entropy)
{
    void *memory = mmap(NULL, sizeof(*entropy->pool), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    entropy->pool = memory != MAP_FAILED ? memory : NULL;
    if (entropy->pool == NULL)
        return false;
    /* A kernel before Linux 4.14 does not know it; nothing here forks after the start. */
    madvise(memory, sizeof(*entropy->pool), MADV_WIPEONFORK);
    return true;
}

void entropy_deinit(struct entropy *entropy)
{
    if (entropy->pool == NULL)
        return;
    explicit_bzero(entropy->pool, sizeof(*entropy->pool));
    munmap(entropy->pool, sizeof(*entropy->pool));
    entropy->pool = NULL;
}

static void refill(struct entropy_pool *pool)
{
    size_t got = 0;
    while (got < sizeof(pool->bytes)) {
        ssize_t more = getrandom(pool->bytes + got, sizeof(pool->bytes) - got, 0);
        assert(more > 0 || errno == EINTR);
        got += more > 0 ? (size_t)more : 0;
    }
    pool->left = sizeof(pool->bytes);
}

void entropy_fill(struct entropy *entropy, void *to, size_t len)
{
    struct entropy_pool *pool = entropy->pool;
    assert(len <= ENTROPY_MAX);
    if (pool->left < len)
        refill(pool);
    unsigned char *from = pool->bytes + sizeof(pool->bytes) - pool->left;
    memcpy(to, from, len);
    explicit_bzero(from, len);
    pool->left -= len;
}
