/*
 * What the engine is given: the rules, which are the configuration as checked data, and the io,
 * which is what it needs done by the server or by a simulator.
 */
#ifndef ENGINE_FLIGHT_IO_H
#define ENGINE_FLIGHT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/master/link.h"
#include "engine/round/round.h"
#include "protocol/limits.h"
#include "protocol/reply.h"

struct engine_client;

/* Texts belong to the caller and outlive the engine. */
struct engine_rules {
    struct round_rules round;
    const char *key_prefix;
    size_t key_prefix_len;
    bool shared_names; /* keys are also those of other libraries */
    const char *node_names[LIMIT_NODES];
    struct link_login logins[LIMIT_NODES];
    const char *cluster;
    int64_t max_ttl_ns;
    int64_t fence_ttl_ns;
    int64_t max_extensions;
    int64_t max_hold_ns;
    int64_t backoff_min_ns;
    int64_t backoff_max_ns;
    size_t waiters; /* at most so many wait, in all and for one resource */
    size_t waiters_per_resource;
    bool fence_always; /* each LOCK, whether it asks for it or not */
    uint32_t durable;  /* see guard_rules, for these four */
    bool bootstrap;
    const char *reset_set;
    bool read_only;
    /* Names this host's clock: the same for two daemons if and only if they read the same
     * CLOCK_BOOTTIME, so a boot has its own. Letters, digits and dashes. */
    const char *clock_id;
};

enum { ENGINE_CLOCK_ID_MAX = 80 };

/* The two connections to a master: engine/master/link.h and engine/master/tracker.h. */
enum channel { CHANNEL_COMMANDS, CHANNEL_TRACKING, CHANNELS };

/* So many answers io.tried() hears of a node. */
enum { ENGINE_SELF_TESTS = 9 };

/* A lock that is released by force. */
struct engine_broken {
    const char *resource; /* a view, without a final NUL */
    size_t resource_len;
    const char *token;
    uint64_t owner_id; /* the client it was granted to; 0: through another daemon */
    const char *owner_label;
};

/* None of these functions may call the engine back. */
struct engine_io {
    void *context;

    /* As in struct link_io; but the same may be written to several nodes, or
     * to none. */
    void (*open)(void *context, unsigned node, enum channel channel);
    void (*close)(void *context, unsigned node, enum channel channel);
    void (*write)(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                  size_t len);

    /* The answer to a submitted request. Exactly one of the two comes for each request, unless the
     * client is gone first. If this one cannot be delivered, it sets client->disconnected. */
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

    /* The answer to one of what engine_self_test() has asked; REASON_NONE: it does that. NULL where
     * nobody calls that. */
    void (*tried)(void *context, unsigned node, const char *what, enum reason refused);
    /* ... and what this master says of whose the name of another is; "" nothing. */
    void (*leased)(void *context, unsigned node, unsigned named, const char *lease);

    /* Microseconds since 1970, for ballots. */
    int64_t (*wall_us)(void *context);

    /* Random bytes fit for a token: unpredictable, never repeated. */
    void (*random)(void *context, void *bytes, size_t len);
};

#endif
