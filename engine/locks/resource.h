/*
 * What the daemon knows about one resource and its key: the rounds about it, its queue of waiters,
 * and the lock granted through this daemon. A resource exists while there is any of these, or while
 * it is kept for a far waiter. Only the engine uses this header.
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
struct seeker;
struct semaphore;

/* The fields are in the order of their use, by cache lines, as in struct flight. */
struct resource {
    LIST_ENTRY(resource) of_chain;
    TAILQ_ENTRY(resource) of_all;
    struct lock *lock; /* the lock granted through this daemon that has not ended; NULL: none */

    const char *name; /* as clients know it: the key without its prefix */
    size_t name_len;
    struct flight_key key;  /* points to key_bytes */
    struct flight *acquire; /* the round for the first waiter; NULL: none */
    /* LOCKs with this name, with WAIT and without; those with SLOTS included. */
    unsigned waits;
    unsigned impatient;
    bool kept; /* kept for a far waiter although nothing else needs the resource */
    /* The outcome of the last round for the queue. A waiter whose wait ends gets it as its
     * reply. */
    enum outcome last_outcome;

    alignas(POOL_LINE) struct queue queue;
    struct timer wake;                            /* when the queue has to be run again */
    alignas(POOL_LINE) char key_bytes[LIMIT_KEY]; /* the key on the masters: prefix and name */

    struct seeker *seeker; /* if the resource is a slot: its seeker in the queue; NULL: none */
    struct semaphore *semaphore;     /* the semaphore with this name; NULL: no LOCK with SLOTS */
    LIST_ENTRY(resource) waited_for; /* linked in manager->waited_for while waits > 0 */
    enum reason last_reasons[LIMIT_NODES]; /* valid if last_outcome is OUTCOME_NOQUORUM */
};

/* A lock that was granted through this daemon. */
struct lock {
    struct timer timer;
    struct resource *resource;
    /* Client whose connection holds the lock; NULL for a lock without HOLD. */
    struct engine_client *client;

    TAILQ_ENTRY(lock) entry; /* in manager->held; or in manager->unheld, oldest first */
    struct flight *renewal;  /* the extension under way; NULL: none */
    char token[LIMIT_TOKEN];

    /* When the lock was granted and until when it is valid; set also without HOLD. */
    struct hold hold;
    int64_t ends_ns;          /* when the key is gone from all masters at the latest */
    enum engine_loss failing; /* why the HOLD is lost if no extension succeeds in time */
    uint64_t client_id;       /* id of the client that the lock was granted to */

    /* In manager->due while a due extension waits for room; its time is when the HOLD is lost. */
    struct timer due;
    uint32_t holding_nodes; /* nodes that hold the key, as far as the last round shows */
    bool lingers;           /* kept until its deadline unless UNLOCK or QUIT ends it */
    char client_label[LIMIT_TAG + 1];
    LIST_ENTRY(lock) of_client;
};

TAILQ_HEAD(lock_list, lock);

struct resources {
    struct pool pool;
    LIST_HEAD(resource_chain, resource) * chains; /* by the hash of the name */
    uint64_t seed;                                /* secret seed of the hash function */
    TAILQ_HEAD(, resource) all;                   /* oldest first */
    /* The prefix of all keys; its fixed size lets the compiler copy it in a few moves. */
    char prefix[LIMIT_KEY_PREFIX];
    size_t prefix_len;
};

/* Returns false if there is not enough memory. The prefix is copied. */
bool resources_init(struct resources *resources, size_t count, const char *prefix,
                    size_t prefix_len, uint64_t seed);
void resources_deinit(struct resources *resources);

/* The resource with this name, or with this key, which may lack the prefix. NULL: this daemon knows
 * nothing about it. */
struct resource *resource_find(const struct resources *resources, const char *name,
                               size_t name_len);
struct resource *resource_find_key(const struct resources *resources, const char *key,
                                   size_t key_len);

/* The resource with this name. It is created if there is none, with a queue that starts with this
 * seed. NULL: the pool is empty. */
struct resource *resource_take(struct resources *resources, const struct engine_rules *rules,
                               uint32_t seed, const char *name, size_t name_len);

/* The resource that contains this key. */
struct resource *resource_of(const struct flight_key *key);

/* Free the resource of each of these keys that nothing uses any more. `idle` is empty
 * afterwards. */
void resources_sweep(struct resources *resources, struct flight_keys *idle);

#endif
