/*
 * The lock manager, the layer above the rounds in flight: requests, the queues of waiters, the
 * locks that are granted, and those that a connection holds. What all files of this folder share,
 * and how a request is answered.
 *
 *     requests.c   what clients ask for, and their leaving
 *     waits.c      LOCK: which waiter is next, and the rounds for it; hand-overs
 *     grants.c     the locks that are granted; HOLDs and their extensions
 *     breaks.c     BREAK: a lock is released by force
 */
#ifndef ENGINE_LOCKS_MANAGER_H
#define ENGINE_LOCKS_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/client.h"
#include "engine/flight/flights.h"
#include "engine/locks/extensions.h"
#include "engine/locks/queue.h"
#include "engine/locks/resource.h"
#include "engine/round/fence.h"
#include "engine/timer.h"
#include "protocol/reply.h"
#include "protocol/request.h"

/* One request of a client that has not been answered yet. It outlives the rounds that are run for
 * it. */
struct pending_request {
    struct engine_client *client; /* the owner */
    struct flight *flight;        /* the round that is run for it; NULL while a LOCK waits */
    struct resource *resource;    /* LOCK */
    LIST_ENTRY(pending_request) of_client;
    int64_t received_ns;
    int64_t ttl_ns; /* LOCK */
    bool outbid;    /* LOCK: its last round was */
    bool waits;     /* LOCK: with WAIT */
    bool fenced;    /* LOCK */
    bool hold;      /* LOCK */
    bool lingers;   /* LOCK with HOLD */
    bool tagged;
    unsigned char tag_len;
    int64_t ballot_seen;  /* LOCK: the greatest it was outbid by */
    char tag[LIMIT_TAG];  /* zeros behind it */
    struct waiter waiter; /* LOCK: its place in the queue of its resource, once it has joined */
};

struct lock_manager {
    const struct engine_rules *rules;
    const struct engine_io *io;
    struct engine_stats *stats;
    struct flights *flights;

    struct fence fence;
    struct timers timers;
    uint32_t queue_seed; /* of the last queue; daemons begin with different ones */
    struct pool pending_requests;
    struct resources resources;
    struct extensions extensions;
    struct pool breakings;

    struct pool locks;
    struct lock_list held; /* those with HOLD, held_count of them */
    size_t held_count;
    struct lock_list unheld; /* the others, the oldest first */
    struct timers due; /* those of the held that are to be extended as soon as there is room */
    unsigned renewing; /* extensions of the daemon under way, and at most */
    unsigned renewals_max;
    size_t holding; /* HOLDs that were granted or are asked for */

    size_t waiting; /* LOCKs with WAIT in some queue */
    LIST_HEAD(, resource) waited_for;
    int64_t far_asked_ns; /* when a master was last asked for a far waiter */
    size_t kept_count;    /* resources that are kept for far waiters */
    bool draining;
};

/* What an timer lies inside of. */
enum manager_timer { TIMER_WAIT_DEADLINE, TIMER_WAKE, TIMER_LOCK };

/* False if there is not enough memory. All pointers outlive it. */
bool manager_init(struct lock_manager *manager, const struct engine_rules *rules,
                  const struct engine_io *io, struct engine_stats *stats, struct flights *flights);
void manager_deinit(struct lock_manager *manager);

/* NULL if there is no room. */
struct pending_request *pending_open(struct pool *pending_requests, struct engine_client *client,
                                     const struct request *request, int64_t now_ns);

/* It has been answered, or its client has left. */
void pending_close(struct pool *pending_requests, struct pending_request *pending);

/* This round is run for it; or no longer, as it has settled, or been cancelled. */
void pending_set_flight(struct pending_request *pending, struct flight *flight);
void pending_leave_flight(struct pending_request *pending);

/* NULL without one. */
const char *pending_tag(const struct pending_request *pending);

/* Answer a request that is not taken. */
void manager_refuse(struct lock_manager *manager, struct engine_client *client,
                    const struct request *request, enum round_kind kind, const struct reply *reply);

/* For a reply that is NOQUORUM: why each node had no vote. */
void manager_explain_votes(const struct lock_manager *manager, const enum reason *reasons,
                           struct reply *reply);

/* Answer a request, which ends it. False if the answer reached no client. */
bool manager_reply(struct lock_manager *manager, struct pending_request *pending,
                   enum round_kind kind, const struct reply *reply);

/* The same, and it is not counted among the outcomes of requests for locks. */
bool manager_say(struct lock_manager *manager, struct pending_request *pending,
                 const struct reply *reply);

/* ... from what its round has come to. */
bool manager_answer(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

#endif
