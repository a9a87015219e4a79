/*
 * Random bytes for tokens, from the kernel, some thousand at a time: the call costs more than they
 * do. Used bytes are erased. A process that forks keeps them to itself: its child draws others. A
 * clone of a running virtual machine has the same bytes as the original; docs/operations.md says
 * that such clones must not be made.
 */
#ifndef SERVER_RANDOM_H
#define SERVER_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

enum { RANDOM_MAX = 4096 };

struct random {
    struct random_pool *pool; /* owned; zero in a child of fork() */
};

/* False if there is not enough memory. */
bool random_init(struct random *random);
void random_deinit(struct random *random);

/* At most RANDOM_MAX bytes. Cannot fail: without random bytes no lock is safe, so that aborts. */
void random_fill(struct random *random, void *to, size_t len);

#endif
