/* Bytes in flight in one direction, on virtual time. */
#ifndef TESTS_FAKE_PIPE_H
#define TESTS_FAKE_PIPE_H

#include <stdint.h>

#include "tests/fake/bytes.h"

enum { PIPE_SEGMENTS = 256 };

struct pipe {
    struct bytes bytes;
    struct {
        uint64_t end; /* number of bytes ever sent, including this segment */
        int64_t at_ns;
    } segments[PIPE_SEGMENTS]; /* a ring */
    unsigned first;
    unsigned count;
    uint64_t sent;   /* number of bytes ever sent */
    uint64_t taken;  /* number of bytes ever taken */
    uint64_t sealed; /* number of bytes that are, or were, in segments */
    int64_t last_ns; /* arrival of the last segment */
};

void pipe_clear(struct pipe *pipe);
void pipe_add(struct pipe *pipe, const char *bytes, size_t len);
/* Consume bytes that have arrived. */
void pipe_take(struct pipe *pipe, size_t len);

/* The bytes sent up to `end` arrive at at_ns, but not before earlier bytes. */
void pipe_seal(struct pipe *pipe, uint64_t end, int64_t at_ns);

/* The number of bytes that have arrived and were not taken. */
size_t pipe_arrived(struct pipe *pipe, int64_t now_ns);

/* Move the arrived bytes to `to`; NULL: discard them. Returns their number. */
size_t pipe_move(struct pipe *pipe, struct bytes *to, int64_t now_ns);

/* The next arrival; INT64_MAX: no bytes are in flight. */
int64_t pipe_next_ns(const struct pipe *pipe);

#endif
