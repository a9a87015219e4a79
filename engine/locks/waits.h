/*
 * LOCKs that wait: which waiter of a resource is next, the rounds for it, and probes of keys that
 * clients wait for. Also releases, because a lock that is released through this daemon is handed
 * over to the next waiter.
 */
#ifndef ENGINE_LOCKS_WAITS_H
#define ENGINE_LOCKS_WAITS_H

#include "engine/locks/manager.h"

/* Do what the queue asks for now: start a round, send key probes, or set its timer. */
void waits_run(struct lock_manager *manager, struct resource *resource, int64_t now_ns);

/* The acquire round for the first waiter has settled. Returns false if it granted the lock but the
 * grant reached no client. */
bool waits_on_settled(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

/* Release a token. If this daemon has granted the lock (`known`) and there is a waiter, hand the
 * lock over instead, unless the hand-over streak is over. flight: the release round that the caller
 * has opened for an UNLOCK; NULL: no client waits for a reply, and this function opens a round. */
void waits_release(struct lock_manager *manager, struct resource *resource, const char *token,
                   struct flight *flight, bool known, int64_t now_ns);

/* A reply with the result of the last round for this resource, to a LOCK that was received at
 * received_ns. NOQUORUM has the reasons of now, if there is no quorum now either. */
struct reply waits_last_reply(const struct lock_manager *manager, struct resource *resource,
                              int64_t hint_ms, int64_t received_ns, int64_t now_ns);

/* The reply to a LOCK with SLOTS that is granted no slot: HELD, with the smallest hint of slots 1
 * to `slots` that have seekers; or NOQUORUM. ends_ns: the end of a slot that this daemon has
 * granted, and that has no seeker; TIMER_NEVER: none. waits_answer_slots() sends it to a pending
 * LOCK. */
struct reply waits_slots_reply(const struct lock_manager *manager, struct semaphore *semaphore,
                               unsigned slots, int64_t received_ns, int64_t ends_ns,
                               int64_t now_ns);
void waits_answer_slots(struct lock_manager *manager, struct pending_request *pending,
                        int64_t ends_ns, int64_t now_ns);

/* The time is over that this LOCK may wait for its lock, or for its round to start. */
void waits_on_deadline(struct lock_manager *manager, struct pending_request *pending,
                       int64_t now_ns);

/* The request waits at most node_timeout for its round to start. */
void waits_set_start_deadline(struct lock_manager *manager, struct pending_request *pending,
                              int64_t now_ns);

/* Remove a LOCK from its queue or, with SLOTS, from its semaphore, whether a round for it is under
 * way or not. The caller replies to it. */
void waits_leave(struct lock_manager *manager, struct pending_request *pending);

/* A LOCK with WAIT, or a seeker, has joined the queue: use what the daemon knows of the lock. */
void waits_watch(struct resource *resource, int64_t now_ns);

/* Ask this node what holds the key. */
void waits_probe_key(struct lock_manager *manager, struct resource *resource, unsigned node,
                     enum redis_form form, int64_t now_ns);

/* The daemon stops: reply SHUTDOWN to this LOCK, unless a round for it is under way. Then it gets
 * the lock if its round grants it; otherwise a LOCK with WAIT or with several SLOTS gets SHUTDOWN,
 * and any other LOCK gets the outcome of the round. waits_drain(): the same for the waiters of all
 * resources. */
void waits_shut_down(struct lock_manager *manager, struct pending_request *pending);
void waits_drain(struct lock_manager *manager, int64_t now_ns);

#endif
