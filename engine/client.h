/*
 * The engine's state of one client connection. Each session of the server contains one, and reads
 * it through engine/view.h only.
 */
#ifndef ENGINE_CLIENT_H
#define ENGINE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/limits.h"

struct pending_request;
struct lock;

/* How the connection of a client ends. The engine undoes its pending LOCKs in every case. */
enum engine_end {
    /* The connection is going to end, in order or not. The client is told of its undone LOCKs
     * and keeps its locks. */
    ENGINE_ENDING,
    /* The client has ended its side in order and may still read. It is told of its undone LOCKs.
     * The engine releases what it holds, except for locks that linger. */
    ENGINE_HALF_CLOSED,
    /* The client reads nothing more. Nothing is sent to it; otherwise as HALF_CLOSED. */
    ENGINE_CLOSED,
    /* The client has sent QUIT. Nothing is sent to it, and locks that linger are released too. */
    ENGINE_QUIT,
    /* The connection is lost. Nothing is sent to the client. Its locks are neither extended nor
     * released, because the client may live and rely on them. */
    ENGINE_GONE,
};

struct engine_client {
    LIST_HEAD(, pending_request) pending_requests; /* requests without a reply so far */
    unsigned pending_count;
    LIST_HEAD(, lock) holds; /* locks that end with the connection */
    unsigned hold_count;
    uint64_t id;
    char label[LIMIT_TAG + 1]; /* set by NAME; "" without one */
    bool disconnected;         /* no reply can reach the client any more */
};

#endif
