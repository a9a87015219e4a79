/*
 * The locks that were granted through this daemon: until when each is safe, which connection holds
 * it, when the daemon extends it, and what its client is told.
 */
#ifndef ENGINE_LOCKS_GRANTS_H
#define ENGINE_LOCKS_GRANTS_H

#include "engine/locks/manager.h"

/* max_hold has changed: so may have when each HOLD is extended next, or is lost. */
void grants_set_timers(struct lock_manager *manager);

/* A LOCK was granted to this client. */
void grants_on_granted(struct lock_manager *manager, const struct flight *flight,
                       struct engine_client *client, bool hold, bool lingers, int64_t now_ns);

/* The limit that this EXTEND meets, if any: one word for LIMIT. Over the connection that holds the
 * lock that is max_hold alone, and as the daemon's own extensions are, it is not counted. */
const char *grants_refuse_extension(const struct lock_manager *manager,
                                    const struct engine_client *client,
                                    const struct request *request, const struct resource *resource,
                                    int64_t now_ns);

/* An extension has settled: of a client, or of the daemon itself. The call, if any, is answered by
 * the caller. */
void grants_on_extended(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

/* This client has it released. If another one holds it, that one is told. False if the token was
 * not granted through this daemon, as far as it knows. */
bool grants_end(struct lock_manager *manager, struct resource *resource, const char *token,
                const struct engine_client *client);

/* The client has ended its connection in order: take the next lock that it held, which is to be
 * released now. Those that linger stay unless it said QUIT. NULL: there is none. */
struct resource *grants_take_held(struct lock_manager *manager, const struct engine_client *client,
                                  bool by_quit, char *token);

/* The connection is gone: what it held is not extended any more. */
void grants_abandon(struct lock_manager *manager, struct engine_client *client);

/* Extend what is due, as far as there is room for that. */
bool grants_want_renewals(const struct lock_manager *manager);
void grants_renew(struct lock_manager *manager, int64_t now_ns);

void grants_on_timer(struct lock_manager *manager, struct lock *lock, int64_t now_ns);

/* The daemon stops. */
void grants_lose_all(struct lock_manager *manager);

/* A node has lost its vote for this reason: clients whose locks it has are warned. */
void grants_warn(struct lock_manager *manager, unsigned node, enum reason reason);

#endif
