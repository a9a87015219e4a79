/*
 * What the daemon knows of one resource, or its key: the rounds about it, who waits for it, and the
 * lock it has granted. A resource exists while any of these does. What the engine keeps; nobody
 * else looks inside.
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

/* In the order in which it is needed, as struct flight. */
struct resource {
    LIST_ENTRY(resource) of_chain;
    TAILQ_ENTRY(resource) of_all;
    struct lock *lock; /* granted through this daemon, and not over yet */

    const char *name; /* as clients know it: what follows the prefix of the key */
    size_t name_len;
    struct flight_key key;     /* its bytes are key_bytes */
    struct flight *acquire;    /* the round for the first in the queue; NULL: none */
    unsigned waits;            /* LOCKs with WAIT in its queue */
    bool kept;                 /* for a far waiter, while nothing else is known of it */
    enum outcome last_outcome; /* of the last round for the queue, for those whose wait is over */

    alignas(POOL_LINE) struct queue queue;
    struct timer wake;                            /* of the queue */
    alignas(POOL_LINE) char key_bytes[LIMIT_KEY]; /* as masters know it: with its prefix */

    LIST_ENTRY(resource) waited_for;       /* while there are any */
    enum reason last_reasons[LIMIT_NODES]; /* with OUTCOME_NOQUORUM as the last one */
};

/* A lock that was granted through this daemon. */
struct lock {
    struct timer timer;
    struct resource *resource;
    struct engine_client *client; /* whose connection holds it; NULL for one without HOLD */

    TAILQ_ENTRY(lock) entry; /* of all that are held, or of all others by age */
    struct flight *renewal;  /* the extension that is under way; NULL: none */
    char token[LIMIT_TOKEN];

    struct hold hold;         /* without HOLD, too: since when, until when */
    int64_t ends_ns;          /* when it is gone from the masters at the latest */
    enum engine_loss failing; /* why it is lost, if nothing extends it until then */
    uint64_t client_id;       /* who it was granted to */

    struct timer due;       /* an extension is, and waits for its turn: by when it would be lost */
    uint32_t holding_nodes; /* nodes that have it, as of the last round */
    bool lingers;           /* with HOLD: kept until its deadline unless UNLOCK or QUIT ends it */
    char client_label[LIMIT_TAG + 1];
    LIST_ENTRY(lock) of_client;
};

TAILQ_HEAD(lock_list, lock);

struct resources {
    struct pool pool;
    LIST_HEAD(resource_chain, resource) * chains; /* by the hash of the name */
    uint64_t seed;                                /* of the hash */
    TAILQ_HEAD(, resource) all;                   /* the oldest first */
    char prefix[LIMIT_KEY_PREFIX];                /* of all keys; copied whole, it is a few moves */
    size_t prefix_len;
};

/* False if there is not enough memory. The prefix is copied. */
bool resources_init(struct resources *resources, size_t count, const char *prefix,
                    size_t prefix_len, uint64_t seed);
void resources_deinit(struct resources *resources);

/* What is known of a name; NULL: nothing. Or of a key, which may be none of ours. */
struct resource *resource_find(const struct resources *resources, const char *name,
                               size_t name_len);
struct resource *resource_find_key(const struct resources *resources, const char *key,
                                   size_t key_len);

/* What is known of a name, or else a new one, whose queue begins with this seed. NULL if there is
 * no room. */
struct resource *resource_take(struct resources *resources, const struct engine_rules *rules,
                               uint32_t seed, const char *name, size_t name_len);

/* The resource of a key. */
struct resource *resource_of(const struct flight_key *key);

/* Of these keys, those go of which nothing is known any more. */
void resources_sweep(struct resources *resources, struct flight_keys *idle);

#endif
