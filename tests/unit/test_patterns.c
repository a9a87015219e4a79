/*
 * engine/round/round.h: every pattern of answers of three and five nodes, in an order that varies,
 * against a table of what the outcome has to be.
 */
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/trial.h"

/* Each node does one of six things; so there are 6^3 and 6^5 patterns for each kind of round. */
enum fault { SAYS_YES, SAYS_ABSENT, SAYS_HELD, SAYS_ERROR, IS_SILENT, IS_DOWN, FAULTS };

struct tally {
    unsigned yes, absent, held, silent, failed, down;
};

/* What the outcome has to be once everything is known, by the words of the protocol. */
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
        return said_yes;
    case SAYS_ABSENT:
        return said_absent;
    case SAYS_HELD:
        return said_held(1000, 77);
    case SAYS_ERROR:
    case IS_SILENT:
    case IS_DOWN:
    case FAULTS:
        break;
    }
    return said_oom;
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

/* The nodes answer beginning with `first`; then the deadline; then the silent ones after all. */
static void run_pattern(enum round_kind kind, unsigned nodes, const enum fault *faults,
                        unsigned first)
{
    struct trial t;
    uint32_t reachable = 0;
    for (unsigned i = 0; i < nodes; i++)
        reachable |= (uint32_t)(faults[i] != IS_DOWN) << i;
    trial_begin_with(&t, nodes, kind, reachable);
    for (unsigned k = 0; k < nodes; k++) {
        unsigned i = (first + k) % nodes;
        if (t.sent[ROUND_VOTE] >> i & 1 && faults[i] != IS_SILENT)
            trial_vote(&t, i, answer_of(faults[i]));
    }
    if (t.round.phase != ROUND_SETTLED)
        trial_reach_deadline(&t);

    struct tally tally = count_faults(nodes, faults);
    trial_expect(&t, expected(kind, nodes, &tally));
    if (kind == ROUND_ACQUIRE)
        ck_assert_uint_eq(t.sent[ROUND_UNDO],
                          t.round.outcome == OUTCOME_OK ? 0 : t.sent[ROUND_VOTE]);
    else
        ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    if (t.round.outcome != OUTCOME_OK)
        ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);

    /* A hang that ends later changes nothing, and then nothing is left under way. */
    t.now_ns += 60 * NS_PER_S;
    for (unsigned i = 0; i < nodes; i++) {
        if (t.round.under_way[ROUND_VOTE] >> i & 1)
            trial_vote(&t, i, said_yes);
        if (t.sent[ROUND_UNDO] >> i & 1)
            trial_say(&t, i, ROUND_UNDO, said_yes);
        if (t.sent[ROUND_BACKFILL] >> i & 1)
            trial_say(&t, i, ROUND_BACKFILL, said_yes);
    }
    trial_expect(&t, expected(kind, nodes, &tally));
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
            /* SET answers yes or no; a STATUS changes nothing it could say yes to. */
            possible = possible && !(kind == ROUND_ACQUIRE && faults[i] == SAYS_ABSENT);
            possible = possible && !(kind == ROUND_STATUS && faults[i] == SAYS_YES);
        }
        for (unsigned first = 0; possible && first < nodes; first++)
            run_pattern(kind, nodes, faults, first);
    }
}

START_TEST(every_pattern_of_three_nodes_has_the_outcome_of_the_table)
{
    run_all_patterns((enum round_kind)_i, 3);
}
END_TEST

START_TEST(every_pattern_of_five_nodes_has_the_outcome_of_the_table)
{
    run_all_patterns((enum round_kind)_i, 5);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("patterns");
    TCase *cases = tcase_create("patterns");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, every_pattern_of_three_nodes_has_the_outcome_of_the_table,
                        ROUND_ACQUIRE, ROUND_FREEZE + 1);
    tcase_add_loop_test(cases, every_pattern_of_five_nodes_has_the_outcome_of_the_table,
                        ROUND_ACQUIRE, ROUND_FREEZE + 1);
    suite_add_tcase(suite, cases);
    return suite;
}
