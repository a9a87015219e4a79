/*
 * The locks granted through this daemon: how long each is valid, which connection holds it, when
 * the daemon extends it, and what its client is told.
 */
#ifndef ENGINE_LOCKS_GRANTS_H
#define ENGINE_LOCKS_GRANTS_H

#include "engine/locks/manager.h"

/* max_hold has changed: recompute when each HOLD has to be extended and when it is lost. */
void grants_set_timers(struct lock_manager *manager);

/* A LOCK was granted to this client. */
void grants_on_granted(struct lock_manager *manager, const struct flight *flight,
                       struct engine_client *client, bool hold, bool lingers, int64_t now_ns);

/*
 * The limit that forbids this EXTEND, as the word that follows LIMIT, or NULL. For the connection
 * that holds the lock, max_hold is the only limit, and the extension is not counted, just like the
 * daemon's own.
 */
const char *grants_refuse_extension(const struct lock_manager *manager,
                                    const struct engine_client *client,
                                    const struct request *request, const struct resource *resource,
                                    int64_t now_ns);

/* An extension by a client or by the daemon has settled. The caller answers the pending request,
 * if there is one. */
void grants_on_extended(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

/* This client releases the lock. If another connection holds it, that client is told. Returns
 * false if this daemon does not know the token as granted through it. */
bool grants_end(struct lock_manager *manager, struct resource *resource, const char *token,
                const struct engine_client *client);

/*
 * The client has ended its connection in order. Takes the next lock that it held and stores its
 * token; the caller releases it. A lock that lingers stays unless the client sent QUIT. Returns
 * NULL when no lock is left.
 */
struct resource *grants_take_held(struct lock_manager *manager, const struct engine_client *client,
                                  bool by_quit, char *token);

/* The connection is lost: stop extending its locks, without a release. */
void grants_abandon(struct lock_manager *manager, struct engine_client *client);

/* Start the extensions that are due, as many as the limit allows. */
bool grants_want_renewals(const struct lock_manager *manager);
void grants_renew(struct lock_manager *manager, int64_t now_ns);

void grants_on_timer(struct lock_manager *manager, struct lock *lock, int64_t now_ns);

/* The daemon stops. */
void grants_lose_all(struct lock_manager *manager);

/* A node has lost its vote for this reason: warn the clients whose locks it carries. */
void grants_warn(struct lock_manager *manager, unsigned node, enum reason reason);

#endif
