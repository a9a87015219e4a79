/*
 * One round in flight: the round, its key and its token. A flight is open from flights_open() until
 * its round is settled, flights_conclude() has run, and every command of the round has been
 * answered or lost.
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

/* The key of a resource, with the key prefix; part of struct resource. */
struct flight_key {
    const char *bytes;
    size_t len;
    LIST_HEAD(, flight) flights;
    unsigned key_probes; /* key probes under way */
    bool batched;        /* a release of this key waits for the end of the pass */
    bool idle;           /* linked in the list of keys that may be unused */
    SLIST_ENTRY(flight_key) of_idle;
};

SLIST_HEAD(flight_keys, flight_key);

/* Something about the key has ended. If nothing is known about the key at the end of this pass,
 * its owner frees it. */
void flight_note_idle(struct flight_keys *idle, struct flight_key *key);

/* What the masters said to a round of a BREAK, unfiltered: the round decides whether an answer
 * counts. Owned and cleared by the caller. */
struct flight_notes {
    uint32_t frozen_on; /* nodes that have answered the freeze */
    /* The token that a STATUS found on each node; begins with NUL if there was none. */
    char seen[LIMIT_NODES][LIMIT_TOKEN];
};

/*
 * The fields are in the order of their use, by cache lines of 64 bytes. The first line is all that
 * a vote touches if it does not decide the round. Four votes out of five do not.
 *
 * A release is batched: it is written at the end of this pass. Once it has been written in one
 * command with others, `batch_next` is the next release of that command. For an unfenced vote,
 * `batch_next` is the next vote of its batch (engine/master/link.h). A link expects that pointer to
 * be the first field.
 *
 * A hand-over is two rounds at once, the release of one token and the acquire of the next, which
 * share their votes: one command does both on a node. The release takes the answer at once. The
 * acquire takes it when the guard's probe after it has passed.
 */
struct flight {
    struct flight *batch_next;
    uint32_t batched_for;            /* nodes that get the batched release */
    uint32_t swap_nodes;             /* hand-over, both flights: nodes that got the swap */
    enum redis_command vote_command; /* command of a vote; REDIS_SWAP: the acquire of a hand-over */
    bool settled;    /* linked in flights->settled: flights_conclude() is still to come */
    bool key_probes; /* ACQUIRE: its undo also probes the key, for waiters */
    struct round round;

    alignas(POOL_LINE) struct flight_key *key;
    LIST_ENTRY(flight) of_key;
    TAILQ_ENTRY(flight) of_list; /* in flights->voting, then in flights->settled */
    STAILQ_ENTRY(flight) batched;
    int64_t ballot;    /* ACQUIRE with a fence; otherwise 0 */
    uint32_t backfill; /* granted ACQUIRE: nodes that lack the key, to be written after the reply */

    char token[LIMIT_TOKEN];
    struct flight *partner; /* the other flight of a hand-over */

    /* RELEASE: the reason why a node is not asked, by node; NULL: all nodes are asked. */
    const enum reason *skipped;
    struct flight_notes *notes; /* STATUS, FREEZE; may be NULL */

    /* For the lock manager only. */
    /* NULL: the request was answered, its client left, or there is none. */
    struct pending_request *pending;
    struct breaking *breaking; /* the BREAK of the round; NULL: none, or it has ended */
    struct lock *renews;       /* EXTEND of a HOLD; NULL once the lock has ended */
    bool by_daemon;            /* EXTEND by the daemon itself */

    char predecessor[LIMIT_TOKEN]; /* REDIS_SWAP: the token to be replaced */
};

TAILQ_HEAD(flight_list, flight);

/* The Redis command that carries out a round's command. */
static inline enum redis_command flight_command(const struct flight *flight,
                                                enum round_command command)
{
    switch (command) {
    case ROUND_VOTE:
        return flight->vote_command;
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

/* Does the answer count only once the guard's probe after it has passed? */
static inline bool flight_is_vote(const struct flight *flight, enum round_command command)
{
    return command == ROUND_VOTE && flight->vote_command != REDIS_RELEASE;
}

/* Does the command hand the lock over? */
static inline bool flight_is_swap(const struct flight *flight, enum round_command command)
{
    return flight_command(flight, command) == REDIS_SWAP;
}

#endif
