#include "server/random.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

enum { BYTES = 2 * RANDOM_MAX - sizeof(size_t) };

struct random_pool {
    size_t left; /* unused bytes at the end of the pool; 0 in a child of fork() since Linux 4.14 */
    unsigned char bytes[BYTES];
};

bool random_init(struct random *random)
{
    void *memory = mmap(NULL, sizeof(*random->pool), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    random->pool = memory != MAP_FAILED ? memory : NULL;
    if (random->pool == NULL)
        return false;
    /* Kernels before Linux 4.14 do not support MADV_WIPEONFORK. The daemon does not depend on it,
     * because it does not fork after its start. */
    madvise(memory, sizeof(*random->pool), MADV_WIPEONFORK);
    return true;
}

void random_deinit(struct random *random)
{
    if (random->pool == NULL)
        return;
    explicit_bzero(random->pool, sizeof(*random->pool));
    munmap(random->pool, sizeof(*random->pool));
    random->pool = NULL;
}

static void refill(struct random_pool *pool)
{
    size_t got = 0;
    while (got < sizeof(pool->bytes)) {
        ssize_t more = getrandom(pool->bytes + got, sizeof(pool->bytes) - got, 0);
        assert(more > 0 || errno == EINTR);
        got += more > 0 ? (size_t)more : 0;
    }
    pool->left = sizeof(pool->bytes);
}

void random_fill(struct random *random, void *to, size_t len)
{
    struct random_pool *pool = random->pool;
    assert(len <= RANDOM_MAX);
    if (pool->left < len)
        refill(pool);
    unsigned char *from = pool->bytes + sizeof(pool->bytes) - pool->left;
    memcpy(to, from, len);
    explicit_bzero(from, len);
    pool->left -= len;
}
