/*
 * One quorum round of Redlock ("Distributed Locks with Redis", section "The Redlock Algorithm").
 * Pure: a step function takes an event with its time and returns what to do.
 *
 *     ROUND_ACQUIRE  steps 2 to 5 of the paper: ask every node, count, compute the validity, undo
 *     ROUND_EXTEND   section "Making the algorithm more reliable: Extending the lock"
 *     ROUND_RELEASE  section "Releasing the Lock"
 *     ROUND_STATUS   asks which token holds the key, and changes nothing
 *     ROUND_FREEZE   replaces the token, so that no client can extend the lock (freeze.lua). It
 *                    waits for every node or the deadline, because the release that follows
 *                    depends on the answer of each node
 *
 * A round has three phases:
 *
 *     VOTING      the nodes have been asked; there is no outcome yet
 *
 *     ANSWERING   an acquire that has failed, and whose undo has been sent. Until the deadline it
 *                 waits for answers that make the reply to the client more precise: HELD or
 *                 NOQUORUM, and the hint
 *
 *     SETTLED     the outcome is known, and the caller replies to the client; some commands may
 *                 still be unanswered
 *
 * A round is finished, and its memory may be reused, once it is settled and no command of it is
 * unanswered. So a node that hangs delays the end of the round, but not the reply.
 *
 * The quorum is a majority of the configured nodes, not of the reachable ones. Silence is no vote:
 * an answer that arrives later than node_timeout after the start of the round never counts, even if
 * the daemon reads it before its timer fires.
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

/* The rules that all rounds of a daemon share. */
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

/* The commands of one round that can be under way on a node at the same time. */
enum round_command {
    ROUND_VOTE,     /* the command of this kind of round; its answer is the vote */
    ROUND_UNDO,     /* the release that follows a failed acquire */
    ROUND_BACKFILL, /* after a granted round: SET NX where the key is missing, or was refused;
                       the answer is ignored */
    ROUND_COMMANDS  /* number of commands */
};

enum round_event_type {
    ROUND_EVENT_START,     /* the first event, once */
    ROUND_EVENT_ANSWER,    /* a node has answered a command of this round */
    ROUND_EVENT_DEADLINE,  /* round_deadline_ns() has been reached */
    ROUND_EVENT_CANCEL,    /* the client has gone and waits for no reply */
    ROUND_EVENT_RELEASING, /* a release of the token has begun: stop backfilling it */
    /* The grant of the last step reached no client. The caller has not carried out the other
     * actions of that step, and must not carry them out. */
    ROUND_EVENT_UNDELIVERED,
};

struct round_event {
    enum round_event_type type;
    int64_t now_ns;

    /* START. reachable: nodes that may vote and can be written to. may_hold_key: nodes that have no
     * vote but can be written to and may hold the key. unreachable_because: for each node that is
     * not in `reachable`, the reason; an array of node_count reasons. */
    uint32_t reachable;
    uint32_t may_hold_key;
    const enum reason *unreachable_because;

    /* ANSWER. If the connection was lost instead of answering, `answer` is FAILED with the reason
     * of the loss. */
    unsigned node;
    enum round_command command;
    const struct answer *answer;
};

/* What the caller does after a step. */
struct round_actions {
    uint32_t send_to;        /* write `send` to these nodes; 0: write nothing */
    enum round_command send; /* ROUND_BACKFILL uses round_backfill_ttl_ms() */
    bool answer; /* reply to the client with round->outcome; true at most once in a round */
};

/* Fields that every vote uses come first, then fields that every round uses, and rarely used fields
 * last. There are many rounds, and the processor loads them in cache lines of 64 bytes. */
struct round {
    const struct round_rules *rules;
    int64_t started_ns;

    /* Sets of nodes. Until the round is settled, each node that was asked for a vote is in exactly
     * one of pending, yes, absent, held and failed. */
    uint32_t pending;
    uint32_t yes;
    uint32_t under_way[ROUND_COMMANDS]; /* nodes that have not answered this command */
    enum round_kind kind;
    enum round_phase phase;

    enum outcome outcome; /* valid once the round is settled, unless it was cancelled */
    bool cancelled;
    uint32_t absent;
    uint32_t held;
    uint32_t failed;
    uint32_t sent;    /* nodes that the vote command was sent to, whatever they answered */
    uint32_t missing; /* nodes that have no vote and may lack the key */
    uint32_t outbid;  /* nodes in `held` that refused only because of their greater ballot */
    bool token_releasing;
    bool may_bid_again; /* ACQUIRE: OUTBID is allowed as an outcome; set by the caller */
    int64_t until_ns;   /* ACQUIRE or EXTEND that has a quorum: end of the validity */
    int64_t ttl_ns;
    enum reason reasons[LIMIT_NODES]; /* why each node in `failed` has no vote */

    /* Valid for nodes in `outbid` and in `held`; undefined for others. */
    int64_t ballot_seen;                /* the greatest ballot of the nodes in `outbid` */
    int64_t held_until_ns[LIMIT_NODES]; /* INT64_MAX: not known */
    uint64_t held_by[LIMIT_NODES];      /* fingerprint of the holder; 0: not known */
};

/* Prepare a round. Only ACQUIRE and EXTEND use ttl_ns. rules must outlive the round. */
void round_init(struct round *round, const struct round_rules *rules, enum round_kind kind,
                int64_t ttl_ns);

/* Apply an event to the round. */
void round_step(struct round *round, const struct round_event *event,
                struct round_actions *actions);

/*
 * A fast path for a YES vote that does not decide the round. Most do not: a YES vote can decide
 * only if it completes a quorum, or if a quorum was out of reach before. Returns false if the vote
 * may decide; then nothing has changed, and the caller has to use round_step(). This saves 9 % of
 * the daemon's instructions at 16x16 (16 connections with 16 requests in flight on each).
 */
bool round_add_vote_fast(struct round *round, unsigned node, int64_t now_ns);

/* The round is settled and none of its commands is under way: it may be reused. */
bool round_is_finished(const struct round *round);

/* When the round needs ROUND_EVENT_DEADLINE. The deadline never changes. A settled round does
 * not need the event. */
int64_t round_deadline_ns(const struct round *round);

/* The validity at now_ns of a granted ACQUIRE or EXTEND; may be negative. */
int64_t round_validity_ns(const struct round *round, int64_t now_ns);

/*
 * For HELD: milliseconds until a quorum can be free at the earliest. -1: not known, because the
 * vote is split, a key has no TTL, or nodes did not report the TTL.
 */
int64_t round_hint_ms(const struct round *round, int64_t now_ns);

/* After HELD: did several clients split the votes, so that no client holds the lock? */
bool round_is_split(const struct round *round);

/*
 * After HELD: did at least a quorum of the asked nodes give no refusal, although too few of their
 * votes counted as YES? Then the key may be free on a quorum while the next round is refused in the
 * same way.
 */
bool round_lacked_votes(const struct round *round);

/* The TTL in whole milliseconds for a backfill at now_ns; below 1: it is too late for a
 * backfill. */
int64_t round_backfill_ttl_ms(const struct round *round, int64_t now_ns);

#endif
