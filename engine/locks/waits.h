/*
 * LOCK: which waiter of a resource is next, the rounds for it, and what the masters show of a key
 * that is waited for. A lock that is released through this daemon is handed over to the next.
 */
#ifndef ENGINE_LOCKS_WAITS_H
#define ENGINE_LOCKS_WAITS_H

#include "engine/locks/manager.h"

/* The limit that the request meets, one word; NULL: it is taken, or answered. */
const char *waits_lock(struct lock_manager *manager, struct engine_client *client,
                       const struct request *request, struct resource *resource, int64_t now_ns);

/* Do what the queue wants done now. */
void waits_run(struct lock_manager *manager, struct resource *resource, int64_t now_ns);

/* The round for the first in the queue has settled. False if a grant reached no client. */
bool waits_on_settled(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

/* Release a token, or hand the lock over to the next in the queue if this daemon has granted it
 * (known). Without a flight, which the caller has opened for the answer, no client is told. */
void waits_release(struct lock_manager *manager, struct resource *resource, const char *token,
                   struct flight *flight, bool known, int64_t now_ns);

/* The wait of a call is over. */
void waits_on_deadline(struct lock_manager *manager, struct pending_request *pending,
                       int64_t now_ns);

/* A call that waits, or whose round is under way, is over without an answer. */
void waits_leave(struct lock_manager *manager, struct pending_request *pending);

/* What has come up below. */
void waits_take_news(struct lock_manager *manager, const struct flights_news *news, int64_t now_ns);

/* The daemon stops: each waiter is told so. */
void waits_drain(struct lock_manager *manager, int64_t now_ns);

#endif
