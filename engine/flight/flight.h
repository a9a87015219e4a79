/*
 * One round in flight: the round, its key and its token. A flight exists from flights_open() until
 * three things have happened: its round is settled, flights_conclude() has run, and every command
 * of the round has been answered or lost.
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
struct survey;
struct pending_request;
struct lock;

/* The key of a resource on the masters, with the key prefix. It is part of struct resource. */
struct flight_key {
    const char *bytes;
    size_t len;
    LIST_HEAD(, flight) flights;
    unsigned extends;    /* EXTENDs among the flights */
    unsigned releases;   /* RELEASEs among the flights */
    unsigned key_probes; /* key probes and far queries about the key that are under way */
    bool batched;        /* a release of this key is batched and not written yet */
    bool idle;           /* linked in flights->idle_keys */
    SLIST_ENTRY(flight_key) of_idle;
};

SLIST_HEAD(flight_keys, flight_key);

/* A use of the key has ended: link it in `idle`. At the end of the present call of the engine, the
 * lock manager frees its resource if the resource has no other use. */
void flight_note_idle(struct flight_keys *idle, struct flight_key *key);

/* The answers of the masters to the rounds of a BREAK. They are noted as they arrive, also if they
 * do not count for the round. The caller owns and clears the struct. */
struct flight_notes {
    uint32_t frozen_on; /* nodes that have answered the freeze */
    /* The token that a STATUS found on each node; it begins with NUL if the node has none. */
    char seen[LIMIT_NODES][LIMIT_TOKEN];
};

/*
 * The fields are in the order of their use, by cache lines of 64 bytes. A vote that does not decide
 * its round touches the first line only. Four votes out of five do not decide.
 *
 * Batches use `batch_next` in two ways. Unfenced votes that are asked for one after the other form
 * a batch (engine/master/link.h): for such a vote, `batch_next` is the next vote of its batch. A
 * release is batched until the end of the pass. If it is then written in one command with others,
 * `batch_next` is the next release of that command. A link expects this pointer to be the first
 * field.
 *
 * A hand-over is two rounds that share their votes: the release of one token, and the acquire of
 * the next. One command, the swap, does both on a node. The release takes the answer at once. The
 * acquire takes it when the guard's probe after the swap has passed.
 */
struct flight {
    struct flight *batch_next;
    uint32_t batched_for; /* nodes that the batched release is still to be written to */
    uint32_t swap_nodes;  /* both flights of a hand-over: nodes that get the swap */
    /* Command of ROUND_VOTE; REDIS_SWAP: this is the acquire of a hand-over. */
    enum redis_command vote_command;
    bool settled;    /* linked in flights->settled, so flights_conclude() has not run yet */
    bool key_probes; /* ACQUIRE: its undo also serves as a key probe, for waiters */
    struct round round;

    alignas(POOL_LINE) struct flight_key *key;
    LIST_ENTRY(flight) of_key;
    /* In flights->voting until the round is settled, then in flights->settled. */
    TAILQ_ENTRY(flight) of_list;
    STAILQ_ENTRY(flight) batched;
    int64_t ballot;    /* ACQUIRE with a fence: its ballot; otherwise 0 */
    uint32_t backfill; /* granted ACQUIRE: nodes that lack the key and get it after the reply */

    char token[LIMIT_TOKEN];
    struct flight *partner; /* the other flight of a hand-over; NULL: none, or it has ended */

    /* RELEASE: for each node, why it is left out; REASON_NONE: it is not. NULL: no node is left
     * out. */
    const enum reason *skipped;
    struct flight_notes *notes; /* STATUS, FREEZE; may be NULL */

    /* The next five fields are for the lock manager only. */
    /* The request that the round runs for. NULL: there is none, it was answered, or its client
     * left. */
    struct pending_request *pending;
    struct breaking *breaking; /* the BREAK of the round; NULL: none, or it has ended */
    struct survey *survey;     /* STATUS: the STATUS with SLOTS that it is part of; NULL: none */
    /* EXTEND of a HOLD by the daemon: the lock; NULL once the lock has ended. */
    struct lock *renews;
    bool by_daemon; /* EXTEND that the daemon started by itself */

    char predecessor[LIMIT_TOKEN]; /* REDIS_SWAP: the token that the swap replaces */
};

TAILQ_HEAD(flight_list, flight);

/* The Redis command by which this command of the round is sent. */
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

/* Is the answer a vote, which counts only once the guard's probe after it has passed? */
static inline bool flight_is_vote(const struct flight *flight, enum round_command command)
{
    return command == ROUND_VOTE && flight->vote_command != REDIS_RELEASE;
}

/* Is the command a swap, which hands the lock over? */
static inline bool flight_is_swap(const struct flight *flight, enum round_command command)
{
    return flight_command(flight, command) == REDIS_SWAP;
}

#endif
