/* BREAK: release a lock by force. */
#ifndef ENGINE_LOCKS_BREAKS_H
#define ENGINE_LOCKS_BREAKS_H

#include "engine/locks/manager.h"

/* Returns false if there is not enough memory. */
bool breaks_init(struct lock_manager *manager);

/* Begin a BREAK. `status` is its first round, a STATUS that finds out which token holds the key;
 * the caller starts it. Returns false if too many BREAKs are under way. */
bool breaks_begin(struct lock_manager *manager, struct flight *status);

/*
 * A round of a BREAK has settled. If the BREAK ends with it, the request is answered and the
 * function returns NULL. Otherwise it returns the BREAK. Then the caller concludes the round
 * (flights_conclude()) and calls breaks_continue(), which starts the next round.
 */
struct breaking *breaks_on_settled(struct lock_manager *manager, struct flight *flight,
                                   int64_t now_ns);
void breaks_continue(struct lock_manager *manager, struct resource *resource,
                     struct breaking *breaking, int64_t now_ns);

#endif
