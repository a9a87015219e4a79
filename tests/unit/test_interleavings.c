/*
 * All interleavings of two acquiring rounds on three nodes: all orders in which commands are sent,
 * executed and answered, all choices of masters that refuse, all moments at which a deadline passes
 * or a client leaves.
 *
 * Each reachable state is visited once. In every state at most one of the two rounds has been
 * granted. In every final state a granted round has a quorum of keys and any other round has none,
 * and each round was answered once and is finished.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "engine/round/round.h"
#include "protocol/units.h"
#include "tests/runner.h"

enum { ROUNDS = 2, NODES = 3, COMMANDS = 3, SEEN = 1 << 24, STACK = 1 << 16 };

static const struct round_rules rules = {
    .node_count = NODES,
    .quorum = 2,
    .node_timeout_ns = 50 * NS_PER_MS,
    .min_validity_ns = NS_PER_MS,
    .drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS},
};

/* The connection of one round's daemon to one node: its commands in order, and how many of them
 * have been sent, executed and answered. */
struct channel {
    unsigned char commands[COMMANDS]; /* enum round_command */
    unsigned char answers[COMMANDS];  /* enum answer_kind */
    unsigned char sent;
    unsigned char executed;
    unsigned char answered;
};

struct state {
    struct round rounds[ROUNDS];
    struct channel channels[ROUNDS][NODES];
    unsigned char keys[NODES]; /* 0: free; 1 + index of the round that holds the key */
    unsigned char answers[ROUNDS];
    bool overdue[ROUNDS];
    bool left[ROUNDS];
};

/* Check's own assertions record each position, which is too slow for millions of states. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("assertion failed: %s", #condition);                                      \
    } while (0)

/* Events that a test allows in addition to commands and answers. */
static bool may_refuse; /* masters can refuse votes of the first round */
static bool may_leave;  /* clients can leave before their answer */

static uint64_t *seen;
static unsigned seen_count;
static struct state *stack;
static unsigned depth;
static unsigned ends;
static unsigned grants;

/* --- visited states --- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    return hash ^ hash >> 32;
}

/* A hash of all that the state says of one node. */
static uint64_t node_hash(const struct state *state, unsigned node)
{
    uint64_t hash = mix(1, state->keys[node]);
    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct round *round = &state->rounds[i];
        const uint32_t sets[] = {
            round->pending,
            round->yes,
            round->absent,
            round->held,
            round->failed,
            round->sent,
            round->missing,
            round->outbid,
            round->under_way[ROUND_VOTE],
            round->under_way[ROUND_UNDO],
            round->under_way[ROUND_BACKFILL],
        };
        uint64_t bits = 0;
        for (unsigned k = 0; k < sizeof(sets) / sizeof(sets[0]); k++)
            bits = 2 * bits + (sets[k] >> node & 1);
        hash = mix(hash, bits);
        const unsigned char *bytes = (const unsigned char *)&state->channels[i][node];
        for (size_t k = 0; k < sizeof(struct channel); k++)
            hash = mix(hash, bytes[k]);
    }
    return hash;
}

/* Nodes have no order: states that differ only by a permutation of nodes hash to the same value. */
static uint64_t hash_of(const struct state *state)
{
    uint64_t hash = 1;
    uint64_t nodes = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct round *round = &state->rounds[i];
        uint64_t flags = (uint64_t)round->phase << 8 | (uint64_t)round->outcome << 4 |
                         (uint64_t)round->cancelled << 3 | (uint64_t)state->overdue[i] << 2 |
                         (uint64_t)state->left[i] << 1;
        hash = mix(mix(hash, flags), state->answers[i]);
    }
    for (unsigned node = 0; node < NODES; node++)
        nodes += mix(node_hash(state, node), 7);
    return mix(hash, nodes);
}

static bool is_new(const struct state *state)
{
    uint64_t hash = hash_of(state);
    hash += hash == 0; /* 0 marks an empty slot */
    for (size_t i = hash % SEEN;; i = (i + 1) % SEEN) {
        if (seen[i] == hash)
            return false;
        if (seen[i] == 0) {
            seen[i] = hash;
            EXPECT(++seen_count < SEEN / 2);
            return true;
        }
    }
}

/* --- steps --- */

static int64_t now_of(const struct state *state, unsigned round)
{
    return state->overdue[round] ? round_deadline_ns(&state->rounds[round]) + 1 : 0;
}

static void step(struct state *state, unsigned round, const struct round_event *event)
{
    struct round_actions actions;
    round_step(&state->rounds[round], event, &actions);
    for (unsigned node = 0; node < NODES; node++) {
        struct channel *channel = &state->channels[round][node];
        if (!(actions.send_to & nodes_only(node)))
            continue;
        EXPECT(channel->sent < COMMANDS);
        channel->commands[channel->sent++] = (unsigned char)actions.send;
    }
    state->answers[round] = (unsigned char)(state->answers[round] + actions.answer);
    EXPECT(state->answers[round] <= 1);
}

/* The node executes the next command of this connection. If `refuses` is set, the command is a vote
 * and the node refuses it. */
static void execute(struct state *state, unsigned round, unsigned node, bool refuses)
{
    struct channel *channel = &state->channels[round][node];
    unsigned command = channel->commands[channel->executed];
    unsigned char mine = (unsigned char)(1 + round);
    unsigned char before = state->keys[node];
    enum answer_kind answer = before == 0 ? ANSWER_ABSENT : ANSWER_HELD;
    if (refuses) {
        answer = ANSWER_FAILED;
    } else if (command == ROUND_UNDO) {
        if (before == mine)
            state->keys[node] = 0;
        answer = before == mine ? ANSWER_YES : answer;
    } else if (before == 0) {
        state->keys[node] = mine;
        answer = ANSWER_YES;
    }
    channel->answers[channel->executed++] = (unsigned char)answer;
}

static void answer(struct state *state, unsigned round, unsigned node)
{
    struct channel *channel = &state->channels[round][node];
    unsigned number = channel->answered++;
    enum answer_kind kind = channel->answers[number];
    step(state, round,
         &(struct round_event){
             .type = ROUND_EVENT_ANSWER,
             .now_ns = now_of(state, round),
             .node = node,
             .command = channel->commands[number],
             .answer = &(struct answer){.kind = kind,
                                        .reason = kind == ANSWER_FAILED ? REASON_OOM : REASON_NONE,
                                        .pttl_ms = 1000,
                                        .holder = 2 - round},
         });
}

/* --- invariants --- */

static bool is_granted(const struct state *state, unsigned round)
{
    const struct round *it = &state->rounds[round];
    return it->phase == ROUND_SETTLED && it->outcome == OUTCOME_OK;
}

static unsigned keys_of(const struct state *state, unsigned round)
{
    unsigned count = 0;
    for (unsigned node = 0; node < NODES; node++)
        count += state->keys[node] == 1 + round;
    return count;
}

static void check(const struct state *state)
{
    EXPECT(!is_granted(state, 0) || !is_granted(state, 1));
    for (unsigned round = 0; round < ROUNDS; round++)
        if (is_granted(state, round))
            EXPECT(keys_of(state, round) >= rules.quorum);
}

static void check_end(const struct state *state)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        EXPECT(round_is_finished(&state->rounds[round]));
        EXPECT(state->answers[round] == !state->left[round]);
        if (!is_granted(state, round))
            EXPECT(keys_of(state, round) == 0);
        grants += is_granted(state, round);
    }
    ends++;
}

/* --- exploration --- */

static bool visit(const struct state *next)
{
    check(next);
    if (!is_new(next))
        return true;
    EXPECT(depth < STACK);
    memcpy(&stack[depth++], next, sizeof(*next));
    return true;
}

static bool explore_channel(const struct state *state, unsigned round, unsigned node)
{
    const struct channel *channel = &state->channels[round][node];
    struct state next;
    bool moved = false;
    if (channel->executed < channel->sent) {
        memcpy(&next, state, sizeof(next));
        execute(&next, round, node, false);
        if (channel->commands[channel->executed] != ROUND_VOTE)
            answer(&next, round, node); /* the order of these answers does not matter */
        moved = visit(&next);
        if (may_refuse && round == 0 && channel->commands[channel->executed] == ROUND_VOTE) {
            memcpy(&next, state, sizeof(next));
            execute(&next, round, node, true);
            visit(&next);
        }
    }
    if (channel->answered < channel->executed) {
        memcpy(&next, state, sizeof(next));
        answer(&next, round, node);
        moved = visit(&next);
    }
    return moved;
}

/* While the round is undecided, its deadline can pass and its client can leave. */
static void explore_round(const struct state *state, unsigned round)
{
    struct state next;
    if (state->rounds[round].phase == ROUND_SETTLED)
        return;
    if (!state->overdue[round]) {
        memcpy(&next, state, sizeof(next));
        next.overdue[round] = true;
        step(&next, round,
             &(struct round_event){.type = ROUND_EVENT_DEADLINE, .now_ns = now_of(&next, round)});
        visit(&next);
    }
    if (may_leave && !state->left[round]) {
        memcpy(&next, state, sizeof(next));
        next.left[round] = true;
        step(&next, round,
             &(struct round_event){.type = ROUND_EVENT_CANCEL, .now_ns = now_of(&next, round)});
        visit(&next);
    }
}

static void explore(const struct state *state)
{
    bool moved = false;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned node = 0; node < NODES; node++)
            moved = explore_channel(state, round, node) || moved;
        explore_round(state, round);
    }
    if (!moved)
        check_end(state);
}

/* Explore all states. Each argument is the set of nodes that one of the two rounds can reach. */
static void begin(uint32_t first, uint32_t second)
{
    static const enum reason away[LIMIT_NODES] = {REASON_REFUSED, REASON_REFUSED, REASON_REFUSED};
    const uint32_t reachable[ROUNDS] = {first, second};
    struct state state;
    memset(&state, 0, sizeof(state));
    for (unsigned round = 0; round < ROUNDS; round++) {
        round_init(&state.rounds[round], &rules, ROUND_ACQUIRE, 10 * NS_PER_S);
        step(&state, round,
             &(struct round_event){.type = ROUND_EVENT_START,
                                   .reachable = reachable[round],
                                   .unreachable_because = away});
    }
    visit(&state);
    while (depth > 0) {
        memcpy(&state, &stack[--depth], sizeof(state));
        explore(&state);
    }
}

static void open_all(void)
{
    seen = calloc(SEEN, sizeof(*seen));
    stack = calloc(STACK, sizeof(*stack));
    ck_assert_ptr_nonnull(seen);
    ck_assert_ptr_nonnull(stack);
    depth = seen_count = ends = grants = 0;
    may_refuse = may_leave = false;
}

static void close_all(void)
{
    free(seen);
    free(stack);
}

const struct runner_settings runner_settings = {
    .setup = open_all, .teardown = close_all, .time_limit_s = 600};

/* With fewer states, the test would have explored too little to prove anything. */
static void expect_seen(unsigned states)
{
    ck_assert_uint_gt(seen_count, states);
    ck_assert_uint_gt(ends, 1000);
    ck_assert_uint_gt(grants, 100);
}

TEST(at_most_one_round_is_granted_and_no_key_is_left)
{
    begin(7, 7);
    expect_seen(350000);
}

TEST(at_most_one_round_is_granted_though_clients_leave)
{
    may_leave = true;
    begin(7, 7);
    expect_seen(1300000);
}

TEST(at_most_one_round_is_granted_though_masters_refuse)
{
    may_refuse = true;
    begin(7, 7);
    expect_seen(800000);
}

TEST(at_most_one_round_is_granted_though_one_misses_a_node)
{
    may_leave = may_refuse = true;
    begin(7, 3);
    begin(6, 3);
    begin(3, 3);
    expect_seen(900000);
}
