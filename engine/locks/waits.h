/*
 * LOCK: which waiter of a resource is next, the rounds for it, and observations of keys that
 * clients wait for. Also releases, because a lock that is released through this daemon is handed
 * over to the next waiter.
 */
#ifndef ENGINE_LOCKS_WAITS_H
#define ENGINE_LOCKS_WAITS_H

#include "engine/locks/manager.h"

/* Handle a LOCK. NULL: the request was accepted or has been answered. Otherwise the limit that the
 * request exceeds, as the word that follows LIMIT in the reply. */
const char *waits_lock(struct lock_manager *manager, struct engine_client *client,
                       const struct request *request, struct resource *resource, int64_t now_ns);

/* Do what the queue asks for now: start a round, send key probes, or set its timer. */
void waits_run(struct lock_manager *manager, struct resource *resource, int64_t now_ns);

/* The acquire round for the first waiter has settled. Returns false if it granted the lock but the
 * grant reached no client. */
bool waits_on_settled(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

/* Release a token, or hand the lock over if this daemon has granted it (known) and there is a
 * waiter. flight: a round that the caller has opened for the request to which it belongs; NULL: no
 * client waits for a reply. */
void waits_release(struct lock_manager *manager, struct resource *resource, const char *token,
                   struct flight *flight, bool known, int64_t now_ns);

/* The wait of this request is over. */
void waits_on_deadline(struct lock_manager *manager, struct pending_request *pending,
                       int64_t now_ns);

/* The request waits at most node_timeout for its round to start. */
void waits_set_start_deadline(struct lock_manager *manager, struct pending_request *pending,
                              int64_t now_ns);

/* A LOCK leaves the queue without a reply from here, whether a round for it is under way or not. */
void waits_leave(struct lock_manager *manager, struct pending_request *pending);

/* Handle what the masters have reported: observations, changes, hints and lost connections. */
void waits_take_news(struct lock_manager *manager, const struct flights_news *news, int64_t now_ns);

/* The daemon stops: reply SHUTDOWN to each waiter, except those with a round under way, which get
 * its result. */
void waits_drain(struct lock_manager *manager, int64_t now_ns);

#endif
