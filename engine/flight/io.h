/*
 * What the owner of the engine provides: the rules and the io. The rules are the checked
 * configuration. The server and the simulator each implement the io.
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

/* The strings belong to the caller and must outlive the engine. */
struct engine_rules {
    struct round_rules round;
    const char *key_prefix;
    size_t key_prefix_len;
    bool shared_names; /* other Redlock libraries may use the same keys */
    const char *node_names[LIMIT_NODES];
    struct link_login logins[LIMIT_NODES];
    const char *cluster;
    int64_t max_ttl_ns;
    int64_t fence_ttl_ns;
    int64_t max_extensions;
    int64_t max_hold_ns;
    int64_t backoff_min_ns;
    int64_t backoff_max_ns;
    /* Limit of waiters for all resources; waiters_per_resource: for each resource. */
    size_t waiters;
    size_t waiters_per_resource;
    bool fence_always; /* every LOCK takes a fence, also without FENCE */
    uint32_t durable;  /* durable, bootstrap, reset_set and read_only: see struct guard_rules */
    bool bootstrap;
    const char *reset_set;
    bool read_only;
    /* The identity of the clock of this host. Two daemons have the same clock_id if and only if
     * they read the same CLOCK_BOOTTIME, so it changes with each boot. Letters, digits, dashes and
     * dots, at most ENGINE_CLOCK_ID_MAX bytes with the NUL. */
    const char *clock_id;
};

enum { ENGINE_CLOCK_ID_MAX = 80 };

/* The number of calls of io.self_tested() for a node. */
enum { ENGINE_SELF_TESTS = 9 };

/* A lock that a BREAK releases. */
struct engine_broken {
    const char *resource; /* not NUL-terminated */
    size_t resource_len;
    const char *token;
    /* Id of the client that was granted the lock; 0: another daemon granted it. */
    uint64_t owner_id;
    const char *owner_label;
};

/* None of these functions may call the engine. */
struct engine_io {
    struct link_io links;
    void *context; /* of the functions below */

    /* The reply to a submitted request. Each request gets exactly one call of reply() or undone(),
     * unless the client ends in a way after which nothing is sent to it (enum engine_end). If the
     * reply cannot be delivered, the function sets client->disconnected. */
    void (*reply)(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                  const struct reply *reply);
    /* A LOCK was undone because the client has ended its side of the connection. */
    void (*undone)(void *context, struct engine_client *client, const char *tag, size_t tag_len);
    /* A message that is not a reply, to a client with a HOLD: LOST or WARN. */
    void (*push)(void *context, struct engine_client *client, const struct push *push);

    /* For the log: at the request of a client, the daemon starts to release this lock by force. */
    void (*breaking)(void *context, const struct engine_client *by,
                     const struct engine_broken *broken);
    /* The BREAK begins to delete the lock from the masters. The checker of the simulator and the
     * unit tests need to know when; the server sets NULL. */
    void (*broken)(void *context, const struct engine_broken *broken);

    /* For the log: the link has left the state `before`. */
    void (*link_changed)(void *context, unsigned node, enum link_state before);
    /* For the log: the node's clock has gone back by back_ns. This is harmless for locks. */
    void (*clock_stepped_back)(void *context, unsigned node, int64_t back_ns);
    /* For the log: the reason why the node has no vote was `before` and is now `reason`.
     * REASON_NONE: it has, or had, its vote. */
    void (*vote_changed)(void *context, unsigned node, enum reason before, enum reason reason,
                         int64_t now_ns);

    /* For the log: a node has answered a command of a round by an error. release: the command was a
     * release. Called once for each reason and connection. */
    void (*command_refused)(void *context, unsigned node, enum reason reason, bool release);

    /* The result of one command of engine_self_test(). what: the command, for people. refused:
     * REASON_NONE if the command works. May be NULL if engine_self_test() is never called. */
    void (*self_tested)(void *context, unsigned node, const char *what, enum reason refused);
    /* From engine_self_test(): the name lease for the node `named` that was found on `node`; "" if
     * there is none. */
    void (*lease_found)(void *context, unsigned node, unsigned named, const char *lease);

    /* The wall clock in microseconds since 1970, for ballots. */
    int64_t (*wall_us)(void *context);
};

#endif
