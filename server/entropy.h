/*
 * Random bytes for tokens, from the kernel, some thousand at a time: the call costs more than they
 * do. Used bytes are erased.
 */
#ifndef SERVER_ENTROPY_H
#define SERVER_ENTROPY_H

#include <stddef.h>

struct entropy {
    unsigned char bytes[8192];
    size_t left; /* unused ones, at the end */
};

void entropy_init(struct entropy *entropy);

/* Not more than it keeps. Cannot fail: without random bytes no lock is safe, so that aborts. */
void entropy_fill(struct entropy *entropy, void *to, size_t len);

#endif
