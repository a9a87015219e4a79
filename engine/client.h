/*
 * What the engine keeps with each client connection. The server has one in each session, and looks
 * at it through engine/view.h only.
 */
#ifndef ENGINE_CLIENT_H
#define ENGINE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/limits.h"

struct pending_request;
struct lock;

/* How its connection ends. Its LOCKs are undone in any case. */
enum engine_end {
    ENGINE_ENDING, /* will end, in order or not: it is told of its LOCKs, and keeps its locks */
    ENGINE_HALF_CLOSED, /* ended its side in order, and may still read: it is told of its LOCKs, and
                           what it holds is released, but for locks that linger */
    ENGINE_CLOSED,      /* reads nothing more: nothing is said; else as HALF_CLOSED */
    ENGINE_QUIT,        /* said QUIT: as CLOSED, and locks that linger are released too */
    ENGINE_GONE, /* gone: nothing is answered any more. What it held is not extended any more,
                    but not released: it may live, and rely on it */
};

struct engine_client {
    LIST_HEAD(, pending_request) pending_requests; /* not answered yet */
    unsigned pending_count;
    LIST_HEAD(, lock) holds; /* locks that end with the connection */
    unsigned hold_count;
    uint64_t id;
    char label[LIMIT_TAG + 1]; /* by NAME; "" without one */
    bool disconnected;         /* no answer can reach the client any more */
};

#endif
