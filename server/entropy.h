/*
 * Random bytes for tokens, from the kernel, some thousand at a time: the call costs more than they
 * do. Used bytes are erased. A process that forks keeps them to itself: its child draws others. A
 * clone of a running virtual machine has the same bytes as the original; docs/operations.md says
 * that such clones must not be made.
 */
#ifndef SERVER_ENTROPY_H
#define SERVER_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>

enum { ENTROPY_MAX = 4096 };

struct entropy {
    struct entropy_pool *pool; /* owned; zero in a child of fork() */
};

/* False if there is not enough memory. */
bool entropy_init(struct entropy *entropy);
void entropy_deinit(struct entropy *entropy);

/* At most ENTROPY_MAX bytes. Cannot fail: without random bytes no lock is safe, so that aborts. */
void entropy_fill(struct entropy *entropy, void *to, size_t len);

#endif
