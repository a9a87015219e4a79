/*
 * What the owner of the engine provides: the rules, which are the checked configuration, and the
 * io, which is implemented by the server or the simulator.
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

/* Strings belong to the caller and must outlive the engine. */
struct engine_rules {
    struct round_rules round;
    const char *key_prefix;
    size_t key_prefix_len;
    bool shared_names; /* other libraries use the same keys */
    const char *node_names[LIMIT_NODES];
    struct link_login logins[LIMIT_NODES];
    const char *cluster;
    int64_t max_ttl_ns;
    int64_t fence_ttl_ns;
    int64_t max_extensions;
    int64_t max_hold_ns;
    int64_t backoff_min_ns;
    int64_t backoff_max_ns;
    size_t waiters; /* limit of waiters, in total; waiters_per_resource: for one resource */
    size_t waiters_per_resource;
    bool fence_always; /* every LOCK takes a fence, whether the client asked for one or not */
    uint32_t durable;  /* see guard_rules, also for the next three fields */
    bool bootstrap;
    const char *reset_set;
    bool read_only;
    /* The identity of this host's clock. Two daemons have the same one if and only if they read
     * the same CLOCK_BOOTTIME, so it changes with each boot. Letters, digits and dashes. */
    const char *clock_id;
};

enum { ENGINE_CLOCK_ID_MAX = 80 };

/* The two connections to a master: engine/master/link.h and engine/master/tracker.h. */
enum channel { CHANNEL_COMMANDS, CHANNEL_TRACKING, CHANNELS };

/* The number of answers that io.self_tested() gets for a node. */
enum { ENGINE_SELF_TESTS = 9 };

/* A lock that a BREAK releases. */
struct engine_broken {
    const char *resource; /* a view, not NUL-terminated */
    size_t resource_len;
    const char *token;
    uint64_t owner_id; /* the client that was granted the lock; 0: granted through another daemon */
    const char *owner_label;
};

/* These functions must not call the engine. */
struct engine_io {
    void *context;

    /* As in struct link_io, except that `nodes` is a set, which may be empty. */
    void (*open)(void *context, unsigned node, enum channel channel);
    void (*close)(void *context, unsigned node, enum channel channel);
    void (*write)(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                  size_t len);

    /* The reply to a submitted request. Each request gets exactly one reply() or undone(),
     * unless its client is gone first. If the reply cannot be delivered, this sets
     * client->disconnected. */
    void (*reply)(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                  const struct reply *reply);
    /* A LOCK was undone because the client ended its side of the connection. */
    void (*undone)(void *context, struct engine_client *client, const char *tag, size_t tag_len);
    /* An unrequested message to a client with a HOLD. */
    void (*push)(void *context, struct engine_client *client, const struct push *push);

    /* For the log: a client has started to release this lock by force. */
    void (*breaking)(void *context, const struct engine_client *by,
                     const struct engine_broken *broken);
    /* For the log: the BREAK has got as far as deleting the lock from the masters. May be NULL. */
    void (*broken)(void *context, const struct engine_broken *broken);

    /* For the log: a link has left the state `before`; a node has lost its vote, or got it back
     * (then `reason` or `before` is REASON_NONE). */
    void (*link_changed)(void *context, unsigned node, enum link_state before);
    /* The node's clock has gone back by back_ns. This is harmless for locks. */
    void (*clock_stepped_back)(void *context, unsigned node, int64_t back_ns);
    void (*vote_changed)(void *context, unsigned node, enum reason before, enum reason reason,
                         int64_t now_ns);

    /* For the log: a node has answered a round's command by an error; `release` says whether it
     * was a release. Called once for each reason and connection. */
    void (*command_refused)(void *context, unsigned node, enum reason reason, bool release);

    /* The answer to one command of engine_self_test(); REASON_NONE: the command works. May be
     * NULL if engine_self_test() is never called. */
    void (*self_tested)(void *context, unsigned node, const char *what, enum reason refused);
    /* The name lease on node `named` that this master has; "" if there is none. */
    void (*lease_found)(void *context, unsigned node, unsigned named, const char *lease);

    /* Microseconds since 1970, for ballots. */
    int64_t (*wall_us)(void *context);

    /* Random bytes for tokens: they must be unpredictable and must never repeat. */
    void (*random)(void *context, void *bytes, size_t len);
};

#endif
