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

struct call;
struct lock;

struct engine_client {
    LIST_HEAD(, call) calls; /* not answered yet */
    unsigned call_count;
    LIST_HEAD(, lock) holds; /* locks that end with the connection */
    unsigned hold_count;
    uint64_t id;
    char label[LIMIT_TAG + 1]; /* by NAME; "" without one */
    bool gone;                 /* no answer can reach the client any more */
};

#endif
