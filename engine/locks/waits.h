/*
 * LOCK: which waiter of a resource is next, the rounds for it, and observations of keys that
 * clients wait for. A lock released through this daemon is handed over to the next waiter.
 */
#ifndef ENGINE_LOCKS_WAITS_H
#define ENGINE_LOCKS_WAITS_H

#include "engine/locks/manager.h"

/* Returns the limit that the request exceeds, as one word; NULL: the request was accepted or
 * answered. */
const char *waits_lock(struct lock_manager *manager, struct engine_client *client,
                       const struct request *request, struct resource *resource, int64_t now_ns);

/* Do what the queue asks for now. */
void waits_run(struct lock_manager *manager, struct resource *resource, int64_t now_ns);

/* The round for the first waiter has settled. Returns false if its grant reached no client. */
bool waits_on_settled(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

/* Release a token. If this daemon granted it (known) and there is a waiter, hand the lock over
 * instead. flight: opened by the caller for the reply; NULL if no client waits for a reply. */
void waits_release(struct lock_manager *manager, struct resource *resource, const char *token,
                   struct flight *flight, bool known, int64_t now_ns);

/* The wait of a request is over. */
void waits_on_deadline(struct lock_manager *manager, struct pending_request *pending,
                       int64_t now_ns);

/* A request that waits, or whose round is under way, ends without a reply. */
void waits_leave(struct lock_manager *manager, struct pending_request *pending);

/* Handle the news from the layer below. */
void waits_take_news(struct lock_manager *manager, const struct flights_news *news, int64_t now_ns);

/* The daemon stops: tell each waiter. */
void waits_drain(struct lock_manager *manager, int64_t now_ns);

#endif
