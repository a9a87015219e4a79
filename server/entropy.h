/*
 * Random bytes for tokens, from the kernel, fetched a few hundred at a time. Used bytes are erased.
 */
#ifndef SERVER_ENTROPY_H
#define SERVER_ENTROPY_H

#include <stddef.h>

struct entropy {
    unsigned char bytes[1024];
    size_t left; /* unused ones, at the end */
};

void entropy_init(struct entropy *entropy);

/* At most 256 bytes at once. Cannot fail: without random bytes no lock is safe, so that aborts. */
void entropy_fill(struct entropy *entropy, void *to, size_t len);

#endif
