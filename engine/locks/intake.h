/*
 * LOCKs that arrive: which are refused at once, and which join the queue of their resource or, with
 * SLOTS, the list of their semaphore.
 */
#ifndef ENGINE_LOCKS_INTAKE_H
#define ENGINE_LOCKS_INTAKE_H

#include <stdint.h>

struct engine_client;
struct lock_manager;
struct request;
struct resource;

/* Handle a LOCK. NULL: the request was accepted or has been answered. Otherwise the limit that the
 * request exceeds, as the word that follows LIMIT in the reply. */
const char *intake_lock(struct lock_manager *manager, struct engine_client *client,
                        const struct request *request, struct resource *resource, int64_t now_ns);

#endif
