/*
 * Bytes on their way in one direction, on virtual time.
 */
#ifndef TESTS_FAKE_PIPE_H
#define TESTS_FAKE_PIPE_H

#include <stdint.h>

#include "tests/fake/bytes.h"

enum { PIPE_SEGMENTS = 256 };

struct pipe {
    struct bytes bytes;
    struct {
        uint64_t end; /* position of its last byte, all bytes ever sent counted */
        int64_t at_ns;
    } segments[PIPE_SEGMENTS]; /* a ring */
    unsigned first;
    unsigned count;
    uint64_t sent;
    uint64_t taken;
    uint64_t sealed; /* up to here in segments */
    int64_t last_ns; /* arrival of the last segment */
};

void pipe_clear(struct pipe *pipe);
void pipe_add(struct pipe *pipe, const char *bytes, size_t len);
void pipe_take(struct pipe *pipe, size_t len);

/* What has been sent up to here arrives then, but not before what went ahead of it. */
void pipe_seal(struct pipe *pipe, uint64_t end, int64_t at_ns);

/* How many bytes have arrived by now and were not taken. */
size_t pipe_arrived(struct pipe *pipe, int64_t now_ns);

/* Take them; nobody gets them if to is NULL. Returns how many. */
size_t pipe_move(struct pipe *pipe, struct bytes *to, int64_t now_ns);

/* When the next bytes arrive; INT64_MAX: none are on their way. */
int64_t pipe_next_ns(const struct pipe *pipe);

#endif
