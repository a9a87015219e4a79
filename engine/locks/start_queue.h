/*
 * The requests that wait for their round to start, because enough rounds are in flight
 * (engine/flight/admission.h). The clients take turns: each gets one start, the client that has
 * waited longest for its turn first. So a client with a thousand requests does not delay one with a
 * single request. The requests of one client start in the order of their arrival. Pure.
 *
 * Only LOCK and STATUS wait here. A LOCK joins when it is the first in the queue of its resource,
 * and that queue wants to start a round.
 */
#ifndef ENGINE_LOCKS_START_QUEUE_H
#define ENGINE_LOCKS_START_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct engine_client;
struct pending_request;

struct start_queue {
    TAILQ_HEAD(, engine_client) clients; /* clients with requests here; the next turn first */
    unsigned client_count;
    size_t length; /* requests of all clients */

    /* The pace at which requests leave, to start or because their time is over. It is measured anew
     * once the queue was empty. */
    int64_t interval_ns; /* mean time between two of them; 0: not measured yet */
    int64_t measured_ns; /* when the present measurement began */
    unsigned left;       /* requests that have left since then */
};

void start_queue_init(struct start_queue *queue);

/* Append a request that is not in the queue. */
void start_queue_join(struct start_queue *queue, struct pending_request *pending, int64_t now_ns);

/* Remove a request that is in the queue, from any position. */
void start_queue_leave(struct start_queue *queue, struct pending_request *pending);

/* Remove and return the next request; NULL if there is none. */
struct pending_request *start_queue_take(struct start_queue *queue, int64_t now_ns);

/* How long another request of this client would wait here, at the present pace. 0: not known. */
int64_t start_queue_delay_ns(struct start_queue *queue, const struct engine_client *client,
                             int64_t now_ns);

#endif
