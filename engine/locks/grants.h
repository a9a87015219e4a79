/*
 * The locks granted through this daemon: how long each lock is valid, which connection holds it,
 * when the daemon extends it, and what its client is told.
 */
#ifndef ENGINE_LOCKS_GRANTS_H
#define ENGINE_LOCKS_GRANTS_H

#include "engine/locks/manager.h"

/* max_hold has changed: compute anew when each HOLD has to be extended and when it is lost. */
void grants_set_timers(struct lock_manager *manager);

/* A LOCK was granted to this client, and the client has been told. hold, lingers: the request had
 * HOLD, LINGER. */
void grants_on_granted(struct lock_manager *manager, const struct flight *flight,
                       struct engine_client *client, bool hold, bool lingers, int64_t now_ns);

/*
 * The limit that forbids this EXTEND, as the word that follows LIMIT in the reply; NULL: it is
 * allowed. If the request comes from the connection that holds the lock, max_hold is the only limit
 * and the extension is not counted, as with the extensions by the daemon itself.
 */
const char *grants_refuse_extension(const struct lock_manager *manager,
                                    const struct engine_client *client,
                                    const struct request *request, const struct resource *resource,
                                    int64_t now_ns);

/* An extension has settled. It was requested by a client or by the daemon itself. If there is a
 * pending request, the caller answers it. */
void grants_on_extended(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

/* `client` releases the lock; if `client` is NULL, a BREAK releases it, or it is gone. If another
 * connection holds the lock, its client is told LOST. Returns false if this daemon has not granted
 * a lock with this token, or has forgotten it. */
bool grants_end(struct lock_manager *manager, struct resource *resource, const char *token,
                const struct engine_client *client);

/* Forget a lock that has ended, or that the caller releases. Nothing is told to its client. */
void grants_forget(struct lock_manager *manager, struct lock *lock);

/* The client sends nothing more: do not extend its HOLDs any more. */
void grants_stop_extending(struct lock_manager *manager, struct engine_client *client);

/* The connection is over: the client's HOLDs become locks without HOLD, and are not released. */
void grants_abandon(struct lock_manager *manager, struct engine_client *client);

/* grants_renew(): start the due extensions of HOLDs, as long as fewer than LIMIT_RENEWALS are under
 * way. grants_want_renewals(): is there one to start? */
bool grants_want_renewals(const struct lock_manager *manager);
void grants_renew(struct lock_manager *manager, int64_t now_ns);

/* The timer of a lock is due: have the next grants_renew() extend the lock, report it as lost, or
 * forget it. */
void grants_on_timer(struct lock_manager *manager, struct lock *lock, int64_t now_ns);

/* The daemon stops: report each HOLD as lost. */
void grants_lose_all(struct lock_manager *manager);

/* A node has lost its vote for this reason: warn each client with a HOLD whose key is on that
 * node. */
void grants_warn(struct lock_manager *manager, unsigned node, enum reason reason);

#endif
