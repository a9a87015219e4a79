/*
 * One quorum round of Redlock ("Distributed Locks with Redis", section "The Redlock Algorithm").
 * Pure: a step function that takes an event with the time in it and hands back what to do.
 *
 *     ROUND_ACQUIRE  steps 2 to 5 of the paper: ask every node, count, compute the validity, undo
 *     ROUND_EXTEND   section "Making the algorithm more reliable: Extending the lock"
 *     ROUND_RELEASE  section "Releasing the Lock"
 *     ROUND_STATUS   asks and changes nothing
 *     ROUND_FREEZE   makes sure that nobody extends a lock any more (protocol/freeze.lua). It waits
 *                    for every node or the deadline: what is to be deleted then depends on each
 *
 * A round lives through three phases:
 *
 *     VOTING      the nodes are asked; no outcome yet
 *
 *     ANSWERING   an acquire only: it has failed and is undone already; what is waited for, until
 *                 the deadline at the latest, is a better answer (HELD or NOQUORUM, and the hint)
 *
 *     SETTLED     the client has its answer; commands may still be under way
 *
 * It is finished, and may be reused, once it is settled and no command of it is under way. A node
 * that hangs delays that, not the answer.
 *
 * Quorum is a majority of the configured nodes, whatever is reachable. A node's silence is no vote:
 * an answer that comes later than node_timeout after the start never counts, also when it is seen
 * before the timer has fired.
 */
#ifndef ENGINE_ROUND_ROUND_H
#define ENGINE_ROUND_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/round/validity.h"
#include "protocol/limits.h"
#include "protocol/outcome.h"
#include "protocol/reason.h"
#include "protocol/redis.h"

/* What all rounds of a daemon share. */
struct round_rules {
    unsigned node_count;
    unsigned quorum; /* node_count / 2 + 1 */
    int64_t node_timeout_ns;
    int64_t min_validity_ns;
    struct drift drift;
};

enum __attribute__((packed)) round_kind {
    ROUND_ACQUIRE,
    ROUND_EXTEND,
    ROUND_RELEASE,
    ROUND_STATUS,
    ROUND_FREEZE
};
enum __attribute__((packed)) round_phase { ROUND_VOTING, ROUND_ANSWERING, ROUND_SETTLED };

/* What a round may have under way on a node, besides each other. */
enum round_command {
    ROUND_VOTE,     /* the command of its kind: the answer is the node's vote */
    ROUND_UNDO,     /* the release that follows a failed acquire */
    ROUND_BACKFILL, /* the key, where a granted round found it missing; the answer does not matter
                     */
    ROUND_COMMANDS  /* how many there are */
};

enum round_event_type {
    ROUND_EVENT_START,     /* once, first */
    ROUND_EVENT_ANSWER,    /* a node answered a command of this round */
    ROUND_EVENT_DEADLINE,  /* round_deadline_ns() has been reached */
    ROUND_EVENT_CANCEL,    /* the client has gone: nobody waits for an answer */
    ROUND_EVENT_RELEASING, /* somebody asked to release this round's token: backfill no more */
    /* The grant of the step just taken reached nobody. What else that step asked for has not been
     * done, and must not be. */
    ROUND_EVENT_UNDELIVERED,
};

struct round_event {
    enum round_event_type type;
    int64_t now_ns;

    /* START: which nodes may vote and can be written to, and for each other why not. Some of those
     * can be written to all the same: they carry the lock, but have no say. */
    uint32_t reachable;
    uint32_t carrying;
    const enum reason *unreachable_because; /* node_count of them */

    /* ANSWER: the answer is FAILED with the reason if the connection was lost instead. */
    unsigned node;
    enum round_command command;
    const struct answer *answer;
};

/* What to do after a step. */
struct round_actions {
    uint32_t send_to;        /* write `send` to these nodes; 0: nothing */
    enum round_command send; /* for ROUND_BACKFILL, with round_backfill_ttl_ms() */
    bool answer;             /* tell the client round->outcome: true once in a round's life */
};

/* What each vote looks at comes first, then what each round needs, and at the end what few do:
 * rounds are many, and the processor fetches them a line of 64 bytes at a time. */
struct round {
    const struct round_rules *rules;
    int64_t started_ns;

    /* Sets of nodes. Each node asked is in exactly one of pending, yes, absent, held, failed. */
    uint32_t pending;
    uint32_t yes;
    uint32_t under_way[ROUND_COMMANDS]; /* were sent this command and have not answered */
    enum round_kind kind;
    enum round_phase phase;

    enum outcome outcome; /* once settled; meaningless before, and after a cancel */
    bool cancelled;
    uint32_t absent;
    uint32_t held;
    uint32_t failed;
    uint32_t sent;    /* were sent the vote command, whatever came of it */
    uint32_t missing; /* have no vote, and lack the key */
    uint32_t outbid;  /* of the held: refused for the ballot alone */
    bool token_releasing;
    bool may_bid_again; /* ACQUIRE: with a greater ballot; then the outcome may be OUTBID */
    int64_t until_ns;   /* ACQUIRE, EXTEND, once a quorum has it: how long it may be trusted */
    int64_t ttl_ns;
    enum reason reasons[LIMIT_NODES]; /* of the failed */

    /* Of the outbid, and of the held; of the others, anything. */
    int64_t ballot_seen;                /* the greatest they have shown */
    int64_t held_until_ns[LIMIT_NODES]; /* INT64_MAX unknown */
    uint64_t held_by[LIMIT_NODES];      /* 0 unknown */
};

/* Prepare a round; ttl_ns counts for ACQUIRE and EXTEND. The rules outlive it. */
void round_init(struct round *round, const struct round_rules *rules, enum round_kind kind,
                int64_t ttl_ns);

/* How a round changes. */
void round_step(struct round *round, const struct round_event *event,
                struct round_actions *actions);

/*
 * The same for a vote of yes that asks for nothing, as most do: it decides only where it completes
 * a quorum of them, or where that was out of reach before. False: it may decide, and nothing has
 * changed; take the step. Saves 9 % of the daemon's instructions at 16x16.
 */
bool round_add_vote_fast(struct round *round, unsigned node, int64_t now_ns);

/* It is settled, and no command of it is under way: it may be reused. */
bool round_is_finished(const struct round *round);

/* When it wants ROUND_EVENT_DEADLINE: the same for its whole life; not needed once it is settled.
 */
int64_t round_deadline_ns(const struct round *round);

/* The validity at now_ns of what a granted ACQUIRE or EXTEND promises; may be negative. */
int64_t round_validity_ns(const struct round *round, int64_t now_ns);

/*
 * For HELD: milliseconds until a quorum can be free at the earliest, or -1: a split vote, a key
 * without end, or nodes that did not say.
 */
int64_t round_hint_ms(const struct round *round, int64_t now_ns);

/* After HELD: does nobody hold it, because several clients split the votes? */
bool round_is_split(const struct round *round);

/* After HELD: have so few refused it that the others that were asked would have been a quorum, had
 * all their votes counted? Then it may be free on these, and be refused again all the same. */
bool round_lacked_votes(const struct round *round);

/* The time to live, in whole milliseconds, with which to backfill now; below 1: too late to
 * backfill. */
int64_t round_backfill_ttl_ms(const struct round *round, int64_t now_ns);

#endif
