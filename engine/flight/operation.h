/*
 * One round on its way: the round, the resource it is about, and the token. What the engine keeps;
 * nobody else looks inside.
 */
#ifndef ENGINE_FLIGHT_OPERATION_H
#define ENGINE_FLIGHT_OPERATION_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/locks/call.h"
#include "engine/locks/resource.h"
#include "engine/pool.h"
#include "engine/round/round.h"
#include "protocol/limits.h"
#include "protocol/redis.h"

struct breaking;

/*
 * In the order in which it is needed, by lines of 64 bytes, which is what the processor fetches at
 * a time: the first is all that a vote touches which decides nothing, as four of five do.
 *
 * A release is gathered, to be written at the end of this pass; once it has been written as one
 * command with others, it is together with the next of them. Likewise a plain vote with the next of
 * its run (engine/master/link.h), where links look for it: first of all.
 *
 * A hand-over is two rounds at once, the release of one token and the acquire of the next, which
 * share the votes: one command does both on a node. The answer is taken by the one, and once its
 * guard has passed by the other.
 */
struct operation {
    struct operation *together;
    uint32_t gathered_for;      /* the nodes that are to get it */
    uint32_t shared_on;         /* of a hand-over, either of the two: the nodes asked for both */
    enum redis_command asks_by; /* for votes; REDIS_SWAP: the acquire of a hand-over */
    bool of_daemon;             /* ROUND_EXTEND: no client has asked for it */
    bool settled;               /* in the list of those: what follows has not been done yet */
    struct round round;

    alignas(POOL_LINE) struct resource *resource;
    struct call *call; /* NULL once answered, once the client left, or if nobody asked */
    LIST_ENTRY(operation) of_resource;
    TAILQ_ENTRY(operation) of_list; /* operations->waiting, then operations->settled */
    STAILQ_ENTRY(operation) gathered;
    int64_t ballot;    /* ACQUIRE with a fence; 0 without */
    uint32_t backfill; /* ACQUIRE that is granted: these nodes lack the key; once that is told */

    char token[LIMIT_TOKEN];
    struct operation *partner; /* of a hand-over, the other one */
    struct breaking *breaking; /* of a BREAK; NULL: of none, or that is over */
    struct lock *renews;       /* ROUND_EXTEND of a lock that is held; NULL once that is over */

    char predecessor[LIMIT_TOKEN]; /* REDIS_SWAP */
};

/* All there are. */
struct operations {
    struct pool pool;
    TAILQ_HEAD(operation_list, operation) waiting; /* rounds not settled, by deadline */
    struct operation_list settled; /* ... those that are, in this order, until they are concluded */
};

/* False if there is not enough memory. */
bool operations_init(struct operations *operations);
void operations_deinit(struct operations *operations);

/* A new one, with its round, waiting to be started. NULL if there is no room. */
struct operation *operation_open(struct operations *operations, struct resource *resource,
                                 const struct round_rules *rules, enum round_kind kind,
                                 int64_t ttl_ns);

/* It works for this request. */
void operation_set_call(struct operation *operation, struct call *call);

/* It is over: the call has been left, and no command of its round is under way. */
void operation_free(struct operations *operations, struct operation *operation);

/* What a command of its round is for a master. */
enum redis_command operation_command(const struct operation *operation, enum round_command command);
bool operation_is_release(const struct operation *operation, enum round_command command);

/* Does its answer count only with the guard's behind it? */
bool operation_is_vote(const struct operation *operation, enum round_command command);

/* Does it hand the lock over? */
bool operation_is_swap(const struct operation *operation, enum round_command command);

#endif
