#include "engine/round/round.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"

void round_init(struct round *round, const struct round_rules *rules, enum round_kind kind,
                int64_t ttl_ns)
{
    assert(rules->node_count <= LIMIT_NODES);
    assert(rules->quorum == rules->node_count / 2 + 1);
    /* Leave the fields about holders undefined. They are written before they are read, and they
     * take more memory than all other fields together. */
    memset(round, 0, offsetof(struct round, ballot_seen));
    round->rules = rules;
    round->kind = kind;
    round->phase = ROUND_VOTING;
    round->ttl_ns = ttl_ns;
}

int64_t round_deadline_ns(const struct round *round)
{
    return round->started_ns + round->rules->node_timeout_ns;
}

bool round_is_finished(const struct round *round)
{
    static_assert(ROUND_COMMANDS == 3, "all commands are listed here");
    uint32_t under_way = round->under_way[ROUND_VOTE] | round->under_way[ROUND_UNDO] |
                         round->under_way[ROUND_BACKFILL];
    return round->phase == ROUND_SETTLED && under_way == 0;
}

int64_t round_validity_ns(const struct round *round, int64_t now_ns)
{
    assert(now_ns >= round->started_ns);
    return round->until_ns - now_ns;
}

int64_t round_backfill_ttl_ms(const struct round *round, int64_t now_ns)
{
    return (round->ttl_ns - (now_ns - round->started_ns)) / NS_PER_MS;
}

/* --- the holder and its TTL --- */

/* The number of nodes on which the most common holder has the key. A node whose holder is not known
 * is counted as well, because it may be the same holder. */
static unsigned largest_holding(const struct round *round)
{
    unsigned largest = 0;
    unsigned unknown = 0;
    for (unsigned i = 0; i < round->rules->node_count; i++) {
        if (!(round->held & nodes_only(i)))
            continue;
        if (round->held_by[i] == 0) {
            unknown++;
            continue;
        }
        unsigned same = 0;
        for (unsigned j = 0; j < round->rules->node_count; j++)
            same += (round->held & nodes_only(j)) && round->held_by[j] == round->held_by[i];
        largest = same > largest ? same : largest;
    }
    return largest + unknown;
}

bool round_is_split(const struct round *round)
{
    /* No holder has a quorum, and the silent nodes could not complete one. A split ends when the
     * losers undo their votes, not when a TTL ends. */
    unsigned unsaid = nodes_count(round->failed | round->pending);
    return largest_holding(round) + unsaid < round->rules->quorum;
}

bool round_lacked_votes(const struct round *round)
{
    return nodes_count(round->sent & ~(round->held | round->absent)) >= round->rules->quorum;
}

int64_t round_hint_ms(const struct round *round, int64_t now_ns)
{
    if (round_is_split(round))
        return -1;

    int64_t earliest_ns =
        nodes_quorum_ns(round->rules->quorum, nodes_count(round->yes | round->absent), round->held,
                        round->held_until_ns);
    if (earliest_ns == INT64_MAX)
        return -1;
    return earliest_ns > now_ns ? (earliest_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
}

/* --- votes --- */

/* The number of nodes that have said something about the key. */
static unsigned voted(const struct round *round)
{
    return nodes_count(round->yes | round->absent | round->held);
}

static void remember_holder(struct round *round, unsigned node, const struct answer *answer,
                            int64_t now_ns)
{
    assert(answer->kind == ANSWER_HELD);
    round->held_by[node] = answer->holder;
    round->held_until_ns[node] =
        answer->pttl_ms >= 0 ? now_ns + answer->pttl_ms * NS_PER_MS : INT64_MAX;
}

static void fail_node(struct round *round, unsigned node, enum reason reason)
{
    assert(reason != REASON_NONE);
    round->pending &= ~nodes_only(node);
    round->failed |= nodes_only(node);
    round->reasons[node] = reason;
}

/* Is it too late for a vote? */
static bool is_late(const struct round *round, int64_t now_ns)
{
    return now_ns > round_deadline_ns(round);
}

static void take_vote(struct round *round, unsigned node, const struct answer *answer,
                      int64_t now_ns)
{
    assert(round->pending & nodes_only(node));
    if (is_late(round, now_ns)) {
        fail_node(round, node, REASON_TIMEOUT);
        return;
    }
    switch (answer->kind) {
    case ANSWER_YES:
        round->yes |= nodes_only(node);
        break;
    case ANSWER_ABSENT:
        round->absent |= nodes_only(node);
        break;
    case ANSWER_HELD:
        round->held |= nodes_only(node);
        remember_holder(round, node, answer, now_ns);
        break;
    case ANSWER_OUTBID:
        round->held |= nodes_only(node);
        round->held_until_ns[node] = INT64_MAX;
        round->held_by[node] = 0;
        if (round->outbid == 0 || answer->ballot > round->ballot_seen)
            round->ballot_seen = answer->ballot;
        round->outbid |= nodes_only(node);
        break;
    case ANSWER_FAILED:
        fail_node(round, node, answer->reason);
        return;
    }
    round->pending &= ~nodes_only(node);
}

static void fail_all_pending(struct round *round, enum reason reason)
{
    for (uint32_t rest = round->pending; rest != 0; rest = nodes_after_first(rest))
        fail_node(round, nodes_first(rest), reason);
}

/*
 * --- decisions ---
 *
 * Each kind of round has its own rule.
 */

struct decision {
    enum outcome outcome;
    bool certain; /* no answer of a pending node can change the outcome */
};

static struct decision certainly(enum outcome outcome)
{
    return (struct decision){outcome, true};
}

/* An acquire or an extension has its quorum: is enough validity left? */
static enum outcome granted_or_late(struct round *round, int64_t now_ns)
{
    round->until_ns = valid_until(&round->rules->drift, round->ttl_ns, round->started_ns);
    return round_validity_ns(round, now_ns) >= round->rules->min_validity_ns ? OUTCOME_OK
                                                                             : OUTCOME_LATE;
}

/* An acquire has failed: are there enough votes to say HELD? */
static struct decision decide_failed_acquire(const struct round *round)
{
    unsigned quorum = round->rules->quorum;
    unsigned votes = voted(round);
    if (round->may_bid_again && nodes_count(round->yes | round->outbid) >= quorum)
        return certainly(OUTCOME_OUTBID);
    /* Only the answer to the undo says how long the key lives on a node that refused, and the hint
     * is computed from that. So wait for these answers. */
    if (votes >= quorum)
        return (struct decision){OUTCOME_HELD, (round->held & round->under_way[ROUND_UNDO]) == 0};
    return (struct decision){OUTCOME_NOQUORUM, votes + nodes_count(round->pending) < quorum};
}

/* For EXTEND, RELEASE and FREEZE: does this token hold the key on a quorum of the nodes? GONE: so
 * many nodes deny it that the token cannot have a quorum, even if all other nodes have it. */
static struct decision decide_token(const struct round *round)
{
    unsigned quorum = round->rules->quorum;
    unsigned denials_needed = round->rules->node_count - quorum + 1;
    unsigned denials = nodes_count(round->absent | round->held);
    unsigned pending = nodes_count(round->pending);
    if (nodes_count(round->yes) >= quorum)
        return certainly(OUTCOME_OK);
    if (denials >= denials_needed)
        return certainly(OUTCOME_GONE);
    return (struct decision){OUTCOME_NOQUORUM, nodes_count(round->yes) + pending < quorum &&
                                                   denials + pending < denials_needed};
}

static struct decision decide_status(const struct round *round)
{
    unsigned quorum = round->rules->quorum;
    unsigned holding = largest_holding(round);
    unsigned pending = nodes_count(round->pending);
    if (holding >= quorum)
        return certainly(OUTCOME_HELD);
    if (holding + pending + nodes_count(round->failed) < quorum)
        return certainly(OUTCOME_FREE);
    return (struct decision){OUTCOME_NOQUORUM, pending == 0};
}

/* --- the steps --- */

static void send_to(struct round *round, struct round_actions *actions, enum round_command command,
                    uint32_t nodes)
{
    assert(actions->send_to == 0);
    assert((round->under_way[command] & nodes) == 0);
    actions->send = command;
    actions->send_to = nodes;
    round->under_way[command] |= nodes;
}

static void settle(struct round *round, struct round_actions *actions, enum outcome outcome)
{
    assert(round->phase != ROUND_SETTLED);
    assert(outcome != OUTCOME_OK || nodes_count(round->yes) >= round->rules->quorum);
    round->phase = ROUND_SETTLED;
    round->outcome = outcome;
    actions->answer = !round->cancelled;
}

/* An acquire has failed: release its token on every node where the SET was executed or may still be
 * executed. These include nodes that timed out or refused. */
static void undo(struct round *round, struct round_actions *actions)
{
    assert(round->kind == ROUND_ACQUIRE);
    if (round->sent != 0)
        send_to(round, actions, ROUND_UNDO, round->sent);
}

/*
 * The token has a quorum: write its key to nodes that lack it. An acquire does so on nodes that
 * refused or had no vote, in the step that grants it and never later, because a later backfill
 * could outlive the lock. An extension does so where the key was absent. A node whose vote is
 * pending may still answer YES, so it gets no backfill yet.
 */
static void backfill(struct round *round, struct round_actions *actions, uint32_t missing,
                     int64_t now_ns)
{
    assert(round->phase == ROUND_VOTING || round->outcome == OUTCOME_OK);
    if (missing != 0 && !round->token_releasing && round_backfill_ttl_ms(round, now_ns) >= 1)
        send_to(round, actions, ROUND_BACKFILL, missing);
}

static void decide_acquire(struct round *round, int64_t now_ns, struct round_actions *actions)
{
    unsigned quorum = round->rules->quorum;
    if (round->phase == ROUND_VOTING && nodes_count(round->yes) >= quorum) {
        enum outcome outcome = granted_or_late(round, now_ns);
        if (outcome == OUTCOME_OK)
            backfill(round, actions, round->held | round->missing, now_ns);
        else
            undo(round, actions);
        settle(round, actions, outcome);
        return;
    }
    if (round->phase == ROUND_VOTING && nodes_count(round->yes | round->pending) < quorum) {
        round->phase = ROUND_ANSWERING;
        undo(round, actions);
    }
    if (round->phase != ROUND_ANSWERING)
        return;
    struct decision decision = decide_failed_acquire(round);
    if (decision.certain)
        settle(round, actions, decision.outcome);
}

static void decide(struct round *round, int64_t now_ns, struct round_actions *actions)
{
    if (round->kind == ROUND_ACQUIRE) {
        decide_acquire(round, now_ns, actions);
        return;
    }
    struct decision decision =
        round->kind == ROUND_STATUS ? decide_status(round) : decide_token(round);
    if (round->kind == ROUND_FREEZE)
        decision.certain = round->pending == 0;
    if (!decision.certain)
        return;
    if (round->kind == ROUND_EXTEND && decision.outcome == OUTCOME_OK) {
        /* The release of the token has begun, and would soon break the promise of an OK. */
        decision.outcome = round->token_releasing ? OUTCOME_GONE : granted_or_late(round, now_ns);
        if (decision.outcome == OUTCOME_OK)
            backfill(round, actions, round->absent | round->missing, now_ns);
    }
    settle(round, actions, decision.outcome);
}

static void on_start(struct round *round, const struct round_event *event,
                     struct round_actions *actions)
{
    round->started_ns = event->now_ns;
    uint32_t unreachable = nodes_all(round->rules->node_count) & ~event->reachable;
    for (; unreachable != 0; unreachable = nodes_after_first(unreachable))
        fail_node(round, nodes_first(unreachable),
                  event->unreachable_because[nodes_first(unreachable)]);

    /* If no quorum can be reached, ask no node: an acquire would only have to be undone. A release
     * is sent to every node that can be reached all the same. */
    bool no_quorum = nodes_count(event->reachable) < round->rules->quorum;
    if (no_quorum && round->kind != ROUND_RELEASE) {
        settle(round, actions, OUTCOME_NOQUORUM);
        return;
    }
    assert((event->may_hold_key & event->reachable) == 0);
    round->pending = event->reachable;
    round->sent = event->reachable;
    /* A node without a vote may still hold the key. An extension then has to prolong it and a
     * freeze has to freeze it, as on the other nodes. A granted acquire can backfill it. */
    if (round->kind == ROUND_EXTEND || round->kind == ROUND_FREEZE)
        round->sent |= event->may_hold_key;
    else if (round->kind == ROUND_ACQUIRE)
        round->missing = event->may_hold_key;
    send_to(round, actions, ROUND_VOTE, round->sent);
    /* With a quorum of nodes asked, nothing can be decided before the first vote arrives. */
    if (no_quorum)
        decide(round, event->now_ns, actions);
}

/* A vote that arrives after the round was settled. It can still tell an extension where to backfill
 * the key. */
static void on_straggler(struct round *round, const struct round_event *event,
                         struct round_actions *actions)
{
    bool extended =
        round->kind == ROUND_EXTEND && !round->cancelled && round->outcome == OUTCOME_OK;
    round->pending &= ~nodes_only(event->node);
    if (extended && event->answer->kind == ANSWER_ABSENT && !is_late(round, event->now_ns))
        backfill(round, actions, nodes_only(event->node), event->now_ns);
}

static void on_answer(struct round *round, const struct round_event *event,
                      struct round_actions *actions)
{
    uint32_t node = nodes_only(event->node);
    assert(round->under_way[event->command] & node);
    round->under_way[event->command] &= ~node;
    if (round->phase == ROUND_SETTLED) {
        if (event->command == ROUND_VOTE)
            on_straggler(round, event, actions);
        return;
    }
    switch (event->command) {
    case ROUND_VOTE:
        if (round->pending & node)
            take_vote(round, event->node, event->answer, event->now_ns);
        else if (event->answer->kind == ANSWER_ABSENT)
            round->missing |= node;
        break;
    case ROUND_UNDO:
        /* A node that had refused answers the undo with the present holder of the key. If the key
         * is gone by now, the node counts as free. */
        if (round->held & node) {
            if (event->answer->kind == ANSWER_HELD) {
                remember_holder(round, event->node, event->answer, event->now_ns);
            } else if (event->answer->kind == ANSWER_ABSENT) {
                round->held &= ~node;
                round->absent |= node;
            }
        }
        break;
    case ROUND_BACKFILL:
    case ROUND_COMMANDS:
        assert(false && "a backfill before the round is settled");
    }
    decide(round, event->now_ns, actions);
}

static void on_deadline(struct round *round, int64_t now_ns, struct round_actions *actions)
{
    if (round->phase == ROUND_SETTLED)
        return;
    assert(now_ns >= round_deadline_ns(round));
    fail_all_pending(round, REASON_TIMEOUT);
    decide(round, now_ns, actions);
    if (round->phase == ROUND_ANSWERING) {
        assert(voted(round) >= round->rules->quorum);
        settle(round, actions, OUTCOME_HELD);
    }
}

/* No client waits for the reply any more. An acquire is undone; the other kinds need no undo. */
static void on_cancel(struct round *round, struct round_actions *actions)
{
    round->cancelled = true;
    if (round->phase == ROUND_SETTLED)
        return;
    if (round->kind == ROUND_ACQUIRE && round->phase == ROUND_VOTING)
        undo(round, actions);
    settle(round, actions, OUTCOME_NOQUORUM);
}

/* A grant that did not reach its client is undone like a failed acquire. */
static void on_undelivered(struct round *round, struct round_actions *actions)
{
    assert(round->kind == ROUND_ACQUIRE);
    assert(round->phase == ROUND_SETTLED);
    assert(round->outcome == OUTCOME_OK);
    assert(!round->cancelled);
    round->cancelled = true;
    round->under_way[ROUND_BACKFILL] = 0;
    undo(round, actions);
}

static void check_invariants(const struct round *round)
{
    /* Each node is in one of these sets at most: only then is their sum equal to their union. */
    assert(round->pending + round->yes + round->absent + round->held + round->failed ==
           (round->pending | round->yes | round->absent | round->held | round->failed));
    assert((round->pending & ~round->under_way[ROUND_VOTE]) == 0);
    assert((round->sent & ~nodes_all(round->rules->node_count)) == 0);
}

void round_step(struct round *round, const struct round_event *event, struct round_actions *actions)
{
    *actions = (struct round_actions){0};
    switch (event->type) {
    case ROUND_EVENT_START:
        on_start(round, event, actions);
        break;
    case ROUND_EVENT_ANSWER:
        on_answer(round, event, actions);
        break;
    case ROUND_EVENT_DEADLINE:
        on_deadline(round, event->now_ns, actions);
        break;
    case ROUND_EVENT_CANCEL:
        on_cancel(round, actions);
        break;
    case ROUND_EVENT_RELEASING:
        round->token_releasing = true;
        break;
    case ROUND_EVENT_UNDELIVERED:
        on_undelivered(round, actions);
        break;
    }
    check_invariants(round);
}

bool round_add_vote_fast(struct round *round, unsigned index, int64_t now_ns)
{
    uint32_t node = nodes_only(index);
    assert(round->under_way[ROUND_VOTE] & node);
    if (round->phase != ROUND_SETTLED) {
        unsigned quorum = round->rules->quorum;
        if (round->kind == ROUND_STATUS || round->kind == ROUND_FREEZE ||
            !(round->pending & node) || is_late(round, now_ns) ||
            nodes_count(round->yes | node) >= quorum ||
            nodes_count(round->yes | round->pending) < quorum)
            return false;
        round->yes |= node;
    }
    round->pending &= ~node;
    round->under_way[ROUND_VOTE] &= ~node;
    return true;
}
