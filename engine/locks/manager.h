/*
 * The lock manager, the layer above the rounds in flight. It handles requests, queues of waiters,
 * granted locks and HOLDs. This header has what the files of this folder share, and how requests
 * are answered.
 *
 *     requests.c   requests of clients, and the end of their connections
 *     waits.c      LOCK: which waiter is next, and the rounds for it; hand-overs
 *     grants.c     granted locks; HOLDs and their extensions
 *     breaks.c     BREAK: releases a lock by force
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

/* A request of a client without a reply so far. It outlives the rounds that run for it. */
struct pending_request {
    struct engine_client *client; /* owner */
    struct flight *flight;        /* the round that runs for the request; NULL while a LOCK waits */
    struct resource *resource;    /* set for a LOCK only */
    LIST_ENTRY(pending_request) of_client;
    int64_t received_ns;
    int64_t ttl_ns; /* of a LOCK */
    bool outbid;    /* LOCK: its last round was outbid */
    bool waits;     /* LOCK with WAIT */
    bool fenced;    /* LOCK with FENCE */
    bool hold;      /* LOCK with HOLD */
    bool lingers;   /* LOCK with HOLD and LINGER */
    bool tagged;
    unsigned char tag_len;
    int64_t ballot_seen;  /* LOCK: the greatest ballot that outbid it */
    char tag[LIMIT_TAG];  /* padded with zeros */
    struct waiter waiter; /* LOCK: its entry in the resource's queue, once it has joined */
};

struct lock_manager {
    const struct engine_rules *rules;
    const struct engine_io *io;
    struct engine_stats *stats;
    struct flights *flights;

    struct fence fence;
    struct timers timers;
    uint32_t queue_seed; /* of the last queue; the first one differs between daemons */
    struct pool pending_requests;
    struct resources resources;
    struct extensions extensions;
    struct pool breakings;

    struct pool locks;
    struct lock_list held; /* locks with HOLD, held_count of them */
    size_t held_count;
    struct lock_list unheld; /* locks without HOLD, oldest first */
    struct timers due;       /* held locks to extend as soon as there is room */
    unsigned renewing;       /* extensions by the daemon under way, and their limit */
    unsigned renewals_max;
    size_t holding; /* HOLDs, granted or requested */

    size_t waiting; /* LOCKs with WAIT in all queues */
    LIST_HEAD(, resource) waited_for;
    int64_t far_query_ns; /* when the daemon last asked a master for a far waiter */
    size_t kept_count;    /* resources kept for far waiters */
    bool draining;
};

/* The struct that contains a timer. */
enum manager_timer { TIMER_WAIT_DEADLINE, TIMER_WAKE, TIMER_LOCK };

/* Returns false if there is not enough memory. All pointers must outlive the manager. */
bool manager_init(struct lock_manager *manager, const struct engine_rules *rules,
                  const struct engine_io *io, struct engine_stats *stats, struct flights *flights);
void manager_deinit(struct lock_manager *manager);

/* Returns NULL if the pool is empty. */
struct pending_request *pending_open(struct pool *pending_requests, struct engine_client *client,
                                     const struct request *request, int64_t now_ns);

/* The request has been answered, or its client has left. */
void pending_close(struct pool *pending_requests, struct pending_request *pending);

/* Attach the round that runs for the request; detach it when it has settled or was cancelled. */
void pending_set_flight(struct pending_request *pending, struct flight *flight);
void pending_leave_flight(struct pending_request *pending);

/* NULL without a tag. */
const char *pending_tag(const struct pending_request *pending);

/* Answer a request that was not accepted. */
void manager_refuse(struct lock_manager *manager, struct engine_client *client,
                    const struct request *request, enum round_kind kind, const struct reply *reply);

/* For a NOQUORUM reply: why each node had no vote. */
void manager_explain_votes(const struct lock_manager *manager, const enum reason *reasons,
                           struct reply *reply);

/* Answer a request and close it. Returns false if the reply reached no client. */
bool manager_reply(struct lock_manager *manager, struct pending_request *pending,
                   enum round_kind kind, const struct reply *reply);

/* As manager_reply(), for a reply that does not count as an outcome of a lock request. */
bool manager_send_reply(struct lock_manager *manager, struct pending_request *pending,
                        const struct reply *reply);

/* As manager_reply(), with the outcome of the request's round. */
bool manager_reply_round(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

#endif
