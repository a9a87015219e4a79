/*
 * One round in flight: the round, the key it is about, and the token. A flight is open from
 * flights_open() until its round is settled, what follows has been done (flights_conclude()), and
 * every command of it has been answered or lost.
 */
#ifndef ENGINE_FLIGHT_FLIGHT_H
#define ENGINE_FLIGHT_FLIGHT_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/pool.h"
#include "engine/round/round.h"
#include "protocol/limits.h"
#include "protocol/redis.h"

struct breaking;
struct pending_request;
struct lock;

/* The key of a resource, with its prefix; inside struct resource. */
struct flight_key {
    const char *bytes;
    size_t len;
    LIST_HEAD(, flight) flights;
    unsigned key_probes; /* at the key, under way */
    bool batched;        /* a release of it waits for the end of the pass */
    bool idle;           /* in the list of those that may have become so */
    SLIST_ENTRY(flight_key) of_idle;
};

SLIST_HEAD(flight_keys, flight_key);

/* Something about the key is over: unless more is known of it by the end of this pass, its owner
 * lets go of it. */
void flight_note_idle(struct flight_keys *idle, struct flight_key *key);

/* What the masters have shown to a round of a BREAK, as they said it; whether that counts is the
 * round's affair. Of the caller, which clears it. */
struct flight_notes {
    uint32_t frozen_on;                  /* nodes that have answered the freeze */
    char seen[LIMIT_NODES][LIMIT_TOKEN]; /* by a STATUS; begins with NUL if no token */
};

/*
 * In the order in which it is needed, by lines of 64 bytes, which is what the processor fetches at
 * a time: the first is all that a vote touches which decides nothing, as four of five do.
 *
 * A release is gathered, to be written at the end of this pass; once it has been written as one
 * command with others, `batch_next` is the next of them. The same holds for a plain vote and the
 * next of its run (engine/master/link.h), where links look for it: first of all.
 *
 * A hand-over is two rounds at once, the release of one token and the acquire of the next, which
 * share the votes: one command does both on a node. The answer is taken by the one, and once its
 * guard has passed by the other.
 */
struct flight {
    struct flight *batch_next;
    uint32_t batched_for;       /* the nodes that are to get it */
    uint32_t shared_on;         /* of a hand-over, either of the two: the nodes asked for both */
    enum redis_command asks_by; /* for votes; REDIS_SWAP: the acquire of a hand-over */
    bool settled;               /* in flights->settled: what follows has not been done yet */
    bool key_probes;            /* ACQUIRE: its undo also looks at the key, for waiters */
    struct round round;

    alignas(POOL_LINE) struct flight_key *key;
    LIST_ENTRY(flight) of_key;
    TAILQ_ENTRY(flight) of_list; /* flights->voting, then flights->settled */
    STAILQ_ENTRY(flight) batched;
    int64_t ballot;    /* ACQUIRE with a fence; 0 without */
    uint32_t backfill; /* ACQUIRE that is granted: these nodes lack the key; once that is told */

    char token[LIMIT_TOKEN];
    struct flight *partner; /* of a hand-over, the other one */

    /* RELEASE: nodes that are not asked, each with its reason; NULL: all are. */
    const enum reason *spared;
    struct flight_notes *notes; /* STATUS, FREEZE: or NULL */

    /* Of the lock manager, which alone looks at them. */
    struct pending_request
        *pending;              /* NULL once answered, once the client left, or without a request */
    struct breaking *breaking; /* of a BREAK; NULL: of none, or that is over */
    struct lock *renews;       /* EXTEND of a lock that is held; NULL once that is over */
    bool of_daemon;            /* EXTEND: no client has asked for it */

    char predecessor[LIMIT_TOKEN]; /* REDIS_SWAP */
};

TAILQ_HEAD(flight_list, flight);

/* What a command of its round is for a master. */
static inline enum redis_command flight_command(const struct flight *flight,
                                                enum round_command command)
{
    switch (command) {
    case ROUND_VOTE:
        return flight->asks_by;
    case ROUND_UNDO:
        return REDIS_RELEASE;
    case ROUND_BACKFILL:
        return REDIS_BACKFILL;
    case ROUND_COMMANDS:
        break;
    }
    assert(false && "no command");
    return REDIS_STATUS;
}

static inline bool flight_is_release(const struct flight *flight, enum round_command command)
{
    return flight_command(flight, command) == REDIS_RELEASE;
}

/* Does its answer count only once the guard's probe after it has passed? */
static inline bool flight_is_vote(const struct flight *flight, enum round_command command)
{
    return command == ROUND_VOTE && flight->asks_by != REDIS_RELEASE;
}

/* Does it hand the lock over? */
static inline bool flight_is_swap(const struct flight *flight, enum round_command command)
{
    return flight_command(flight, command) == REDIS_SWAP;
}

#endif
