/*
 * engine/round/round.h: every pattern of answers of three and of five nodes, in varying order.
 * expected() is the table of the required outcomes.
 */
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/round_fixture.h"

/* Each node has one of six behaviours, so each kind of round has at most 6^3 or 6^5 patterns. */
enum fault { SAYS_YES, SAYS_ABSENT, SAYS_HELD, SAYS_ERROR, IS_SILENT, IS_DOWN, FAULTS };

struct tally {
    unsigned yes, absent, held, silent, failed, down;
};

/* The outcome that the protocol requires once all answers are known. */
static enum outcome expected(enum round_kind kind, unsigned nodes, const struct tally *tally)
{
    unsigned quorum = nodes / 2 + 1;
    unsigned voted = tally->yes + tally->absent + tally->held;
    unsigned denied = tally->absent + tally->held;
    unsigned unknown = tally->silent + tally->failed + tally->down;
    if (kind != ROUND_RELEASE && nodes - tally->down < quorum)
        return OUTCOME_NOQUORUM;
    switch (kind) {
    case ROUND_ACQUIRE:
        if (tally->yes >= quorum)
            return OUTCOME_OK;
        return voted >= quorum ? OUTCOME_HELD : OUTCOME_NOQUORUM;
    case ROUND_EXTEND:
    case ROUND_RELEASE:
    case ROUND_FREEZE:
        if (tally->yes >= quorum)
            return OUTCOME_OK;
        return denied > nodes - quorum ? OUTCOME_GONE : OUTCOME_NOQUORUM;
    case ROUND_STATUS:
        break;
    }
    if (tally->held >= quorum)
        return OUTCOME_HELD;
    return tally->held + unknown < quorum ? OUTCOME_FREE : OUTCOME_NOQUORUM;
}

static struct answer answer_of(enum fault fault)
{
    switch (fault) {
    case SAYS_YES:
        return answer_yes;
    case SAYS_ABSENT:
        return answer_absent;
    case SAYS_HELD:
        return answer_held(1000, 77);
    case SAYS_ERROR:
    case IS_SILENT:
    case IS_DOWN:
    case FAULTS:
        break;
    }
    return answer_oom;
}

static struct tally count_faults(unsigned nodes, const enum fault *faults)
{
    struct tally tally = {0};
    for (unsigned i = 0; i < nodes; i++) {
        tally.yes += faults[i] == SAYS_YES;
        tally.absent += faults[i] == SAYS_ABSENT;
        tally.held += faults[i] == SAYS_HELD;
        tally.failed += faults[i] == SAYS_ERROR;
        tally.silent += faults[i] == IS_SILENT;
        tally.down += faults[i] == IS_DOWN;
    }
    return tally;
}

/* The nodes answer in order from `first`; then the deadline passes; then the silent nodes
 * answer. */
static void run_pattern(enum round_kind kind, unsigned nodes, const enum fault *faults,
                        unsigned first)
{
    struct round_fixture t;
    uint32_t reachable = 0;
    for (unsigned i = 0; i < nodes; i++)
        reachable |= (uint32_t)(faults[i] != IS_DOWN) << i;
    fixture_begin_with(&t, nodes, kind, reachable);
    for (unsigned k = 0; k < nodes; k++) {
        unsigned i = (first + k) % nodes;
        if (t.sent[ROUND_VOTE] >> i & 1 && faults[i] != IS_SILENT)
            fixture_vote(&t, i, answer_of(faults[i]));
    }
    if (t.round.phase != ROUND_SETTLED)
        fixture_reach_deadline(&t);

    struct tally tally = count_faults(nodes, faults);
    fixture_expect(&t, expected(kind, nodes, &tally));
    if (kind == ROUND_ACQUIRE)
        ck_assert_uint_eq(t.sent[ROUND_UNDO],
                          t.round.outcome == OUTCOME_OK ? 0 : t.sent[ROUND_VOTE]);
    else
        ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    if (t.round.outcome != OUTCOME_OK)
        ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);

    /* Answers after the outcome change nothing, and afterwards no command is in flight. */
    t.now_ns += 60 * NS_PER_S;
    for (unsigned i = 0; i < nodes; i++) {
        if (t.round.under_way[ROUND_VOTE] >> i & 1)
            fixture_vote(&t, i, answer_yes);
        if (t.sent[ROUND_UNDO] >> i & 1)
            fixture_answer(&t, i, ROUND_UNDO, answer_yes);
        if (t.sent[ROUND_BACKFILL] >> i & 1)
            fixture_answer(&t, i, ROUND_BACKFILL, answer_yes);
    }
    fixture_expect(&t, expected(kind, nodes, &tally));
    for (unsigned command = 0; command < ROUND_COMMANDS; command++)
        ck_assert_uint_eq(t.round.under_way[command], 0);
}

static void run_all_patterns(enum round_kind kind, unsigned nodes)
{
    unsigned patterns = 1;
    for (unsigned i = 0; i < nodes; i++)
        patterns *= FAULTS;
    for (unsigned pattern = 0; pattern < patterns; pattern++) {
        enum fault faults[LIMIT_NODES];
        unsigned rest = pattern;
        bool possible = true;
        for (unsigned i = 0; i < nodes; i++, rest /= FAULTS) {
            faults[i] = (enum fault)(rest % FAULTS);
            /* The reply to a SET is never "absent", and the reply to a STATUS is never "yes". */
            possible = possible && !(kind == ROUND_ACQUIRE && faults[i] == SAYS_ABSENT);
            possible = possible && !(kind == ROUND_STATUS && faults[i] == SAYS_YES);
        }
        for (unsigned first = 0; possible && first < nodes; first++)
            run_pattern(kind, nodes, faults, first);
    }
}

TEST_LOOP(every_pattern_of_three_nodes_has_the_outcome_of_the_table, ROUND_ACQUIRE,
          ROUND_FREEZE + 1)
{
    run_all_patterns((enum round_kind)_i, 3);
}

TEST_LOOP(every_pattern_of_five_nodes_has_the_outcome_of_the_table, ROUND_ACQUIRE, ROUND_FREEZE + 1)
{
    run_all_patterns((enum round_kind)_i, 5);
}
