/*
 * What the daemon knows about one resource and its key: the rounds about it, its queue of waiters,
 * and the lock granted through this daemon. A resource exists while there is any of these. Internal
 * to the engine.
 */
#ifndef ENGINE_LOCKS_RESOURCE_H
#define ENGINE_LOCKS_RESOURCE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/flight/flight.h"
#include "engine/locks/hold.h"
#include "engine/locks/queue.h"
#include "engine/pool.h"
#include "engine/stats.h"
#include "protocol/limits.h"
#include "protocol/outcome.h"
#include "protocol/reason.h"

struct engine_client;
struct lock;

/* The fields are in the order of their use, as in struct flight. */
struct resource {
    LIST_ENTRY(resource) of_chain;
    TAILQ_ENTRY(resource) of_all;
    struct lock *lock; /* granted through this daemon and not ended; NULL: none */

    const char *name; /* as clients know it: the key without its prefix */
    size_t name_len;
    struct flight_key key;  /* points to key_bytes */
    struct flight *acquire; /* the round for the first waiter; NULL: none */
    unsigned waits;         /* LOCKs with WAIT in the queue */
    bool kept;              /* kept for a far waiter although it has no other use */
    /* Of the queue's last round; the reply of a waiter whose wait ends. */
    enum outcome last_outcome;

    alignas(POOL_LINE) struct queue queue;
    struct timer wake;                            /* the queue's timer */
    alignas(POOL_LINE) char key_bytes[LIMIT_KEY]; /* the key on the masters: prefix and name */

    LIST_ENTRY(resource) waited_for;       /* linked while waits > 0 */
    enum reason last_reasons[LIMIT_NODES]; /* valid if last_outcome is OUTCOME_NOQUORUM */
};

/* A lock that was granted through this daemon. */
struct lock {
    struct timer timer;
    struct resource *resource;
    struct engine_client *client; /* connection that holds the lock; NULL for a lock without HOLD */

    TAILQ_ENTRY(lock) entry; /* in `held`, or in `unheld` by age */
    struct flight *renewal;  /* the extension under way; NULL: none */
    char token[LIMIT_TOKEN];

    struct hold hold;         /* start and deadline; also without HOLD */
    int64_t ends_ns;          /* when the key is gone from all masters at the latest */
    enum engine_loss failing; /* the reason for LOST unless an extension succeeds in time */
    uint64_t client_id;       /* the client that the lock was granted to */

    struct timer due; /* set while a due extension waits for room: when the lock would be lost */
    uint32_t holding_nodes; /* nodes with the key, after the last round */
    bool lingers;           /* kept until its deadline unless UNLOCK or QUIT ends it */
    char client_label[LIMIT_TAG + 1];
    LIST_ENTRY(lock) of_client;
};

TAILQ_HEAD(lock_list, lock);

struct resources {
    struct pool pool;
    LIST_HEAD(resource_chain, resource) * chains; /* by the hash of the name */
    uint64_t seed;                                /* of the hash */
    TAILQ_HEAD(, resource) all;                   /* oldest first */
    char prefix[LIMIT_KEY_PREFIX]; /* of all keys; its fixed size makes the copy a few moves */
    size_t prefix_len;
};

/* Returns false if there is not enough memory. The prefix is copied. */
bool resources_init(struct resources *resources, size_t count, const char *prefix,
                    size_t prefix_len, uint64_t seed);
void resources_deinit(struct resources *resources);

/* The resource of a name, or of a key, which may lack the prefix. NULL: the daemon knows nothing
 * about it. */
struct resource *resource_find(const struct resources *resources, const char *name,
                               size_t name_len);
struct resource *resource_find_key(const struct resources *resources, const char *key,
                                   size_t key_len);

/* The resource of a name, created if there is none; the queue of a new one starts with this
 * seed. Returns NULL if the pool is empty. */
struct resource *resource_take(struct resources *resources, const struct engine_rules *rules,
                               uint32_t seed, const char *name, size_t name_len);

/* The resource that contains this key. */
struct resource *resource_of(const struct flight_key *key);

/* Free each resource of these keys about which nothing is known any more. */
void resources_sweep(struct resources *resources, struct flight_keys *idle);

#endif
