/*
 * LOCKs with SLOTS: which slots they try, and which slots the daemon watches for them.
 */
#ifndef ENGINE_LOCKS_SLOTS_H
#define ENGINE_LOCKS_SLOTS_H

#include <stdint.h>

struct lock_manager;

/* Let seekers serve the LOCKs of each semaphore in manager->semaphores.to_serve, and end the
 * semaphores that have no LOCKs any more. */
void slots_run(struct lock_manager *manager, int64_t now_ns);

/* The daemon stops: reply SHUTDOWN to each LOCK with SLOTS, except those with a round under way. */
void slots_drain(struct lock_manager *manager);

#endif
