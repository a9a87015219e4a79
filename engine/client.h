/*
 * The engine's state of one client connection. It is embedded in each session of the server. The
 * server reads it through the functions of engine/view.h only.
 */
#ifndef ENGINE_CLIENT_H
#define ENGINE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/limits.h"

struct pending_request;
struct lock;

/* How the connection of a client ends. In every case the engine undoes the LOCKs of the client that
 * have not been granted yet, and stops extending its HOLDs. */
enum engine_end {
    /* The connection is about to end, but the daemon does not know yet whether the client closed it
     * cleanly. The client is told of its undone LOCKs. Its granted locks stay as they are. */
    ENGINE_ENDING,
    /* The client has cleanly closed its sending side, and perhaps the whole connection. The client
     * is told of its undone LOCKs. The engine releases its HOLDs, except those with LINGER. */
    ENGINE_HALF_CLOSED,
    /* The client has sent QUIT or RESET. Nothing is sent to it. All its HOLDs are released, also
     * those with LINGER. After RESET the client goes on. */
    ENGINE_QUIT,
    /* The connection is lost. Nothing is sent to the client. Its HOLDs are not released, because
     * the client may still run and rely on them. */
    ENGINE_GONE,
};

struct engine_client {
    LIST_HEAD(, pending_request) pending_requests; /* requests without a reply so far */
    unsigned pending_count;
    TAILQ_HEAD(, pending_request) to_start; /* requests that wait for their round to start */
    unsigned to_start_count;
    TAILQ_ENTRY(engine_client) of_starts; /* linked while to_start is not empty */
    LIST_HEAD(, lock) holds;              /* granted HOLDs of this client */
    unsigned hold_count;
    uint64_t id;
    char label[LIMIT_TAG + 1]; /* set by NAME; "" without one */
    bool disconnected;         /* no reply can reach the client any more */
    bool ended;                /* sends nothing more: its HOLDs are not extended any more */
};

#endif
