/*
 * The lock manager, the layer above the rounds in flight. It handles requests, queues of waiters,
 * granted locks and HOLDs. This header has what the files of this folder share, and the functions
 * that reply to requests.
 *
 *     requests.c     requests of clients, and the end of their connections
 *     intake.c       LOCK: limits, refusals without a round, the entry into the queue
 *     news.c         what the masters report about keys that clients wait for
 *     waits.c        LOCK: which waiter is next, and the rounds for it; hand-overs
 *     queue_timer.c  when the queue of a resource runs again
 *     grants.c       granted locks; HOLDs and their extensions
 *     slots.c        LOCK with SLOTS: which slot it tries next
 *     survey.c       STATUS with SLOTS
 *     breaks.c       BREAK: releases a lock by force
 */
#ifndef ENGINE_LOCKS_MANAGER_H
#define ENGINE_LOCKS_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/client.h"
#include "engine/flight/flights.h"
#include "engine/locks/extension_limits.h"
#include "engine/locks/queue.h"
#include "engine/locks/resource.h"
#include "engine/locks/semaphore.h"
#include "engine/locks/start_queue.h"
#include "engine/locks/tags.h"
#include "engine/round/fence.h"
#include "engine/timer.h"
#include "protocol/reply.h"
#include "protocol/request.h"

/* A request of a client that has no reply yet. It can outlive several rounds that run for it. */
struct pending_request {
    struct engine_client *client; /* the client that sent the request */
    /* The round that runs for the request, or that will start once a STATUS leaves the start queue;
     * NULL while a LOCK waits. */
    struct flight *flight;
    struct resource *resource; /* LOCK: the resource that it names; NULL for other requests */
    LIST_ENTRY(pending_request) of_client;
    int64_t received_ns;
    int64_t ttl_ns;    /* LOCK: its TTL */
    bool outbid;       /* LOCK: its last round was outbid */
    bool waits;        /* LOCK with WAIT */
    bool fenced;       /* LOCK with FENCE */
    bool hold;         /* LOCK with HOLD */
    bool lingers;      /* LOCK with HOLD and LINGER */
    bool awaits_start; /* LOCK, STATUS: in the start queue */
    bool tagged;
    unsigned char tag_len;
    bool wait_over;        /* LOCK with SLOTS: its wait has ended during the round under way */
    bool begun;            /* LOCK: a round has begun for it */
    unsigned char tries;   /* LOCK with SLOTS: slots that were tried for it */
    uint16_t slots;        /* LOCK with SLOTS: their number; 0: another request */
    int64_t ballot_seen;   /* LOCK: the greatest ballot by which it was outbid */
    struct seeker *seeker; /* LOCK with SLOTS: the seeker that serves it; NULL: none */
    struct survey *survey; /* STATUS with SLOTS */
    char tag[LIMIT_TAG];
    LIST_ENTRY(pending_request) of_tags; /* linked if tagged */
    TAILQ_ENTRY(pending_request) of_starts;
    int64_t joined_starts_ns; /* when it joined the start queue */
    /* LOCK: its entry in the queue of the resource, or in the list of the semaphore; undefined
     * until it joins. */
    struct waiter waiter;
};

struct lock_manager {
    const struct engine_rules *rules;
    const struct engine_io *io;
    struct engine_stats *stats;
    struct flights *flights;

    struct fence fence;
    struct timers hold_timers; /* of HOLDs: engine_catch_up() runs all that are due */
    /* All other timers. Clients decide how many of them are due at once, so a pass runs at most
     * LIMIT_TIMERS. */
    struct timers timers;
    unsigned timers_left; /* how many of `timers` this pass may still run */
    uint32_t queue_seed;  /* seed of the newest queue; the first seed differs between daemons */
    struct pool pending_requests;
    struct tags tags;
    struct resources resources;
    struct semaphores semaphores;
    struct extension_limits extension_limits;
    struct pool breakings;
    struct pool survey_pool;
    LIST_HEAD(, survey) surveys;

    struct pool locks;
    struct lock_list held; /* locks with HOLD, held_count of them */
    size_t held_count;
    struct lock_list unheld; /* locks without HOLD, oldest first */
    /* HOLDs to extend as soon as renewals_max allows it. The time of each timer is when its HOLD is
     * lost. */
    struct timers due;
    /* Extensions by the daemon itself that are under way; renewals_max is their limit. */
    unsigned renewing;
    unsigned renewals_max;
    size_t holding; /* granted HOLDs, and LOCKs with HOLD that are not granted yet */

    struct start_queue start_queue;
    struct pending_request *next_start; /* the LOCK whose turn to start has come; NULL: none */
    unsigned starts_left;               /* how many requests may still leave it in this pass */
    size_t impatient; /* pending LOCKs without WAIT, and STATUSes in the start queue */

    size_t waiting; /* LOCKs with WAIT in all queues */
    /* Resources with waiters. */
    LIST_HEAD(, resource) waited_for; /* waited_for_count of them */
    size_t waited_for_count;
    int64_t far_query_ns; /* when the last far query was sent */
    size_t kept_count;    /* resources that are kept for far waiters only */
    bool draining;
};

/* Which struct contains a timer: pending_request, resource or lock. */
enum manager_timer { TIMER_WAIT_DEADLINE, TIMER_WAKE, TIMER_LOCK };

/* Returns false if there is not enough memory. Everything that the pointers point to must outlive
 * the manager. */
bool manager_init(struct lock_manager *manager, const struct engine_rules *rules,
                  const struct engine_io *io, struct engine_stats *stats, struct flights *flights);
void manager_deinit(struct lock_manager *manager);

/* The limit for `impatient`, the requests that are answered LIMIT busy if their round does not
 * start within node_timeout. The other half of the places for rounds is for requests that start at
 * once. */
static inline size_t manager_impatient_max(void)
{
    return LIMIT_ROUNDS / 2;
}

/* A LOCK is refused if more than so many of these want the same resource. The others are left to
 * other resources. */
static inline size_t manager_impatient_share(void)
{
    return manager_impatient_max() / 4;
}

static inline struct pending_request *pending_of(struct waiter *waiter)
{
    return (struct pending_request *)((char *)waiter - offsetof(struct pending_request, waiter));
}

/* The semaphore of a LOCK with SLOTS; NULL: a LOCK without. */
static inline struct semaphore *pending_semaphore(const struct pending_request *pending)
{
    return pending->slots > 0 ? pending->resource->semaphore : NULL;
}

/* The resource that rounds for this LOCK acquire: a slot, if a seeker serves the LOCK. */
static inline struct resource *pending_resource(const struct pending_request *pending)
{
    return pending->seeker != NULL ? pending->seeker->slot : pending->resource;
}

/* Take one timer from the budget of this pass. Returns false if the budget is used up. */
static inline bool manager_take_timer(struct lock_manager *manager)
{
    bool left = manager->timers_left > 0;
    manager->timers_left -= left;
    return left;
}

/* Run the queue of this resource at at_ns. */
static inline void manager_wake_queue(struct lock_manager *manager, struct resource *resource,
                                      int64_t at_ns)
{
    resource->wake.kind = TIMER_WAKE;
    timers_set(&manager->timers, &resource->wake, at_ns);
}

/* Create a pending request and link it to its client. NULL: the pool is empty. */
struct pending_request *pending_open(struct lock_manager *manager, struct engine_client *client,
                                     const struct request *request, int64_t now_ns);

/* The request has been answered, or its client has left: free it. */
void pending_close(struct lock_manager *manager, struct pending_request *pending);

/* Attach to the request the round that runs for it; detach the round when it has settled or was
 * cancelled. */
void pending_set_flight(struct pending_request *pending, struct flight *flight);
void pending_leave_flight(struct pending_request *pending);

/* The tag of the request; NULL: it has none. */
const char *pending_tag(const struct pending_request *pending);

/* Count the request in the statistics as one for which no round has started in time. The caller
 * then replies LIMIT busy. */
void manager_note_busy(struct lock_manager *manager, const struct pending_request *pending,
                       int64_t now_ns);

/* Reply to a request that was not accepted, so that it is not a pending request. */
void manager_refuse(struct lock_manager *manager, struct engine_client *client,
                    const struct request *request, enum round_kind kind, const struct reply *reply);

/* For a NOQUORUM reply: add why each node had no vote. */
void manager_explain_votes(const struct lock_manager *manager, const enum reason *reasons,
                           struct reply *reply);

/* Reply to a request, count the outcome, and close the request. Returns false if the reply reached
 * no client. */
bool manager_reply(struct lock_manager *manager, struct pending_request *pending,
                   enum round_kind kind, const struct reply *reply);

/* Like manager_reply(), but without counting the outcome: for replies to BREAK. */
bool manager_send_reply(struct lock_manager *manager, struct pending_request *pending,
                        const struct reply *reply);

/* Like manager_reply(), with the outcome and the details of the request's round. */
bool manager_reply_round(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

#endif
