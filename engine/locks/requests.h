/* Requests of clients, and the end of their connections. engine/engine.h has the contracts. */
#ifndef ENGINE_LOCKS_REQUESTS_H
#define ENGINE_LOCKS_REQUESTS_H

#include "engine/locks/manager.h"

void requests_submit(struct lock_manager *manager, struct engine_client *client,
                     const struct request *request, int64_t now_ns);

void requests_on_end(struct lock_manager *manager, struct engine_client *client,
                     enum engine_end how, int64_t now_ns);

/* Start the round of the next request in the start queue. Returns false if none may start now. */
bool requests_start_next(struct lock_manager *manager, int64_t now_ns);

/* The time is over that the request may wait for its lock, or for its round to start. */
void requests_on_deadline(struct lock_manager *manager, struct pending_request *pending,
                          int64_t now_ns);

/* The time to drain is over: reply SHUTDOWN to each pending request, and undo each LOCK among
 * them. */
void requests_abandon_all(struct lock_manager *manager, int64_t now_ns);

#endif
