/*
 * Random bytes for tokens. They are read from the kernel several thousand at a time, because the
 * system call costs more than the bytes. Used bytes are erased. Since Linux 4.14, a child of fork()
 * reads bytes of its own; on an older kernel it would repeat those of its parent. A clone of a
 * running virtual machine has the same bytes as the original; docs/operations/masters.md says that
 * such clones must not be made.
 */
#ifndef SERVER_RANDOM_H
#define SERVER_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

enum { RANDOM_MAX = 4096 };

struct random {
    struct random_pool *pool; /* owned; zeroed in a child of fork(), since Linux 4.14 */
};

/* False if there is not enough memory. */
bool random_init(struct random *random);
void random_deinit(struct random *random);

/* Write len random bytes, at most RANDOM_MAX. Aborts if the kernel supplies none, because no lock
 * is safe without them. */
void random_fill(struct random *random, void *to, size_t len);

#endif
