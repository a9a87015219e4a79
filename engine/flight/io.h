/*
 * What the engine needs done, by the server or by a simulator. None of these functions may call the
 * engine back.
 */
#ifndef ENGINE_FLIGHT_IO_H
#define ENGINE_FLIGHT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/master/link.h"
#include "protocol/reply.h"

struct engine_client;

/* The two connections to a master: engine/master/link.h and engine/master/tracker.h. */
enum channel { CHANNEL_COMMANDS, CHANNEL_TRACKING, CHANNELS };

/* So many answers io.tried() hears of a node. */
enum { ENGINE_TRIALS = 9 };

/* A lock that is released by force. */
struct engine_broken {
    const char *resource; /* a view, without a final NUL */
    size_t resource_len;
    const char *token;
    uint64_t owner_id; /* the client it was granted to; 0: through another daemon */
    const char *owner_label;
};

struct engine_io {
    void *context;

    /* As in struct link_io and struct tracker_io; but the same may be written to several nodes, or
     * to none. */
    void (*open)(void *context, unsigned node, enum channel channel);
    void (*close)(void *context, unsigned node, enum channel channel);
    void (*write)(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                  size_t len);

    /* The answer to a submitted request. Exactly one of the two comes for each request, unless the
     * client is gone first. If this one cannot be delivered, it sets client->gone. */
    void (*reply)(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                  const struct reply *reply);
    /* A LOCK that was undone because the client ended its side of the connection. */
    void (*undone)(void *context, struct engine_client *client, const char *tag, size_t tag_len);
    /* What a client with a HOLD is told unasked. */
    void (*push)(void *context, struct engine_client *client, const struct push *push);

    /* This client is having it released, from now on: to be logged. */
    void (*breaking)(void *context, const struct engine_client *by,
                     const struct engine_broken *broken);
    /* That has succeeded so far that it is deleted from now on. NULL where it is not wanted. */
    void (*broken)(void *context, const struct engine_broken *broken);

    /* A link went from one state to another; a node lost its vote or got it back (REASON_NONE is
     * before or now): to be logged. */
    void (*link_changed)(void *context, unsigned node, enum link_state before);
    /* The node's clock has gone back by so much. That is harmless for locks. */
    void (*clock_stepped_back)(void *context, unsigned node, int64_t back_ns);
    void (*vote_changed)(void *context, unsigned node, enum reason before, enum reason reason,
                         int64_t now_ns);

    /* A node has answered an error to what a round asked of it, a release or anything else: once
     * for each reason and connection, to be logged. */
    void (*command_refused)(void *context, unsigned node, enum reason reason, bool release);

    /* The answer to one of what engine_try() has asked; REASON_NONE: it does that. NULL where
     * nobody calls that. */
    void (*tried)(void *context, unsigned node, const char *what, enum reason refused);
    /* ... and what this master says of whose the name of another is; "" nothing. */
    void (*leased)(void *context, unsigned node, unsigned named, const char *lease);

    /* Microseconds since 1970, for ballots. */
    int64_t (*wall_us)(void *context);

    /* Random bytes fit for a token: unpredictable, never repeated. */
    void (*entropy)(void *context, void *bytes, size_t len);
};

#endif
