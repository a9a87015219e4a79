/*
 * When the queue of a resource runs again if no event runs it earlier: the timer of the queue.
 */
#ifndef ENGINE_LOCKS_QUEUE_TIMER_H
#define ENGINE_LOCKS_QUEUE_TIMER_H

#include "engine/locks/manager.h"

/* If the last round found no quorum, the queue rests until a quorum may vote. With thousands of
 * queues, the rounds would otherwise keep the daemon busy in vain. Returns when to run the queue
 * again; 0: it does not rest. */
int64_t queue_timer_rest_until_ns(const struct lock_manager *manager,
                                  const struct resource *resource, int64_t now_ns);

/* Set the timer of the queue, which has just run. first: the LOCK that its next round runs for;
 * NULL: there is none. */
void queue_timer_set(struct lock_manager *manager, struct resource *resource,
                     const struct pending_request *first, int64_t now_ns);

#endif
