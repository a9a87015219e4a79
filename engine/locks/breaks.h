/*
 * BREAK: a lock is released by force.
 */
#ifndef ENGINE_LOCKS_BREAKS_H
#define ENGINE_LOCKS_BREAKS_H

#include "engine/locks/manager.h"

/* False if there is not enough memory. */
bool breaks_init(struct lock_manager *manager);

/* This round, a STATUS, is the first of a BREAK, and tells which token is there. False: too many
 * are under way. */
bool breaks_begin(struct lock_manager *manager, struct flight *look);

/* One of its rounds has settled. The BREAK is answered; or it goes on with the next round: then it
 * is returned, and breaks_go_on() follows once the round has been concluded. */
struct breaking *breaks_on_settled(struct lock_manager *manager, struct flight *flight,
                                   int64_t now_ns);
void breaks_go_on(struct lock_manager *manager, struct resource *resource,
                  struct breaking *breaking, int64_t now_ns);

#endif
