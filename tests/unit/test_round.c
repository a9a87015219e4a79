/*
 * protocol/round.h: one quorum round, on virtual time.
 *
 * First readable cases, then every pattern of answers of three and five nodes, in an order that
 * varies, against a table of what the outcome has to be.
 */
#include <string.h>

#include "protocol/nodes.h"
#include "protocol/round.h"
#include "tests/runner.h"

enum { TIMEOUT_MS = 50, TTL_MS = 10000 };

static const int64_t start_ns = 1000 * NS_PER_S;

static struct round_rules rules_for(unsigned node_count)
{
    return (struct round_rules){
        .node_count = node_count,
        .quorum = node_count / 2 + 1,
        .node_timeout_ns = TIMEOUT_MS * NS_PER_MS,
        .min_validity_ns = NS_PER_MS,
        .drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS},
    };
}

/* A round under test, what it has asked for so far, and what the time is. */
struct trial {
    struct round_rules rules;
    struct round round;
    struct round_actions last;
    int64_t now_ns;
    uint32_t sent[ROUND_COMMANDS];
    unsigned answers;
    unsigned quiet; /* votes that the quick way takes */
};

static void note(struct trial *trial)
{
    if (trial->last.send_to != 0)
        trial->sent[trial->last.send] |= trial->last.send_to;
    trial->answers += trial->last.answer;
    ck_assert_uint_le(trial->answers, 1);
}

/* What takes the quick way is what a step makes of it, which asks for nothing; what does not is as
 * it was. */
static void step_both_ways(struct trial *trial, const struct round_event *event)
{
    struct round before = trial->round;
    struct round quiet = trial->round;
    bool counted = round_count_quietly(&quiet, event->node, event->now_ns);
    round_step(&trial->round, event, &trial->last);
    ck_assert_mem_eq(&quiet, counted ? &trial->round : &before, sizeof(quiet));
    trial->quiet += counted;
    if (counted)
        ck_assert(trial->last.send_to == 0 && !trial->last.answer);
}

static void step(struct trial *trial, struct round_event event)
{
    event.now_ns = trial->now_ns;
    if (event.type == ROUND_EVENT_ANSWER && event.command == ROUND_VOTE &&
        event.answer->kind == ANSWER_YES)
        step_both_ways(trial, &event);
    else
        round_step(&trial->round, &event, &trial->last);
    note(trial);
}

static void begin_with(struct trial *trial, unsigned nodes, enum round_kind kind,
                       uint32_t reachable)
{
    static const enum reason refused[LIMIT_NODES] = {REASON_REFUSED, REASON_REFUSED, REASON_REFUSED,
                                                     REASON_REFUSED, REASON_REFUSED};
    memset(trial, 0, sizeof(*trial));
    trial->rules = rules_for(nodes);
    trial->now_ns = start_ns;
    round_init(&trial->round, &trial->rules, kind, TTL_MS * NS_PER_MS);
    step(trial, (struct round_event){.type = ROUND_EVENT_START,
                                     .reachable = reachable,
                                     .unreachable_because = refused});
}

static void begin(struct trial *trial, unsigned nodes, enum round_kind kind)
{
    begin_with(trial, nodes, kind, nodes_all(nodes));
}

static const struct answer yes = {.kind = ANSWER_YES};
static const struct answer absent = {.kind = ANSWER_ABSENT};
static const struct answer oom = {.kind = ANSWER_FAILED, .reason = REASON_OOM};

static struct answer held(int64_t pttl_ms, uint64_t holder)
{
    return (struct answer){.kind = ANSWER_HELD, .pttl_ms = pttl_ms, .holder = holder};
}

static void say(struct trial *trial, unsigned node, enum round_command command,
                struct answer answer)
{
    step(trial,
         (struct round_event){
             .type = ROUND_EVENT_ANSWER, .node = node, .command = command, .answer = &answer});
}

static void vote(struct trial *trial, unsigned node, struct answer answer)
{
    say(trial, node, ROUND_VOTE, answer);
}

static void deadline(struct trial *trial)
{
    trial->now_ns = round_deadline_ns(&trial->round);
    step(trial, (struct round_event){.type = ROUND_EVENT_DEADLINE});
}

static void assert_settled(const struct trial *trial, enum outcome outcome)
{
    ck_assert_int_eq(trial->round.phase, ROUND_SETTLED);
    ck_assert_int_eq(trial->round.outcome, outcome);
    ck_assert_uint_eq(trial->answers, 1);
}

/* --- acquire --- */

START_TEST(grants_at_quorum_not_before)
{
    struct trial t;
    begin(&t, 5, ROUND_ACQUIRE);
    ck_assert_uint_eq(t.sent[ROUND_VOTE], 0x1f);
    vote(&t, 0, yes);
    vote(&t, 3, yes);
    ck_assert_uint_eq(t.answers, 0);
    vote(&t, 1, yes);
    assert_settled(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    /* 10 s less 1 % less 10 ms, and no time has passed. */
    ck_assert_int_eq(round_validity_ns(&t.round, t.now_ns), 9890 * NS_PER_MS);
}
END_TEST

START_TEST(a_yes_that_decides_nothing_is_counted_quietly)
{
    struct trial t;
    begin(&t, 5, ROUND_ACQUIRE);
    vote(&t, 0, yes);
    vote(&t, 1, yes);
    ck_assert_uint_eq(t.quiet, 2);
    vote(&t, 2, yes);
    ck_assert_uint_eq(t.quiet, 2);
    assert_settled(&t, OUTCOME_OK);
    t.now_ns += 60 * NS_PER_S;
    vote(&t, 3, yes);
    ck_assert_uint_eq(t.quiet, 3);
}
END_TEST

START_TEST(a_late_yes_is_not_counted_quietly)
{
    struct trial t;
    begin(&t, 5, ROUND_ACQUIRE);
    t.now_ns = round_deadline_ns(&t.round) + 1;
    vote(&t, 0, yes);
    ck_assert_uint_eq(t.quiet, 0);
    ck_assert_uint_eq(t.round.failed, 1);
}
END_TEST

START_TEST(a_yes_out_of_reach_of_a_quorum_is_not_counted_quietly)
{
    struct trial t;
    begin(&t, 5, ROUND_RELEASE);
    vote(&t, 0, absent);
    vote(&t, 1, absent);
    vote(&t, 2, oom);
    vote(&t, 3, yes);
    ck_assert_uint_eq(t.quiet, 0);
    assert_settled(&t, OUTCOME_GONE);
}
END_TEST

START_TEST(a_yes_to_a_status_is_not_counted_quietly)
{
    struct trial t;
    begin(&t, 3, ROUND_STATUS);
    vote(&t, 0, yes);
    ck_assert_uint_eq(t.quiet, 0);
}
END_TEST

START_TEST(finished_once_the_stragglers_have_answered)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    vote(&t, 0, yes);
    vote(&t, 1, yes);
    ck_assert(!round_is_finished(&t.round));
    t.now_ns += 60 * NS_PER_S;
    vote(&t, 2, yes);
    ck_assert(round_is_finished(&t.round));
    ck_assert_uint_eq(t.answers, 1);
}
END_TEST

START_TEST(failed_acquire_is_undone_on_every_node_it_was_sent_to)
{
    struct trial t;
    begin(&t, 5, ROUND_ACQUIRE);
    vote(&t, 0, yes);
    vote(&t, 1, oom);
    vote(&t, 2, held(-1, 0));
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    vote(&t, 3, held(-1, 0));
    /* Also where it failed, was refused, or has not answered yet: the SET may still land. */
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x1f);
}
END_TEST

START_TEST(nothing_is_asked_where_no_quorum_is_reachable)
{
    struct trial t;
    begin_with(&t, 5, ROUND_ACQUIRE, 0x03);
    assert_settled(&t, OUTCOME_NOQUORUM);
    ck_assert_uint_eq(t.sent[ROUND_VOTE], 0);
    ck_assert(round_is_finished(&t.round));
    ck_assert_uint_eq(round_voting(&t.round), 2);
    ck_assert_int_eq(t.round.reasons[4], REASON_REFUSED);
    ck_assert_int_eq(t.round.reasons[0], REASON_NONE);
}
END_TEST

START_TEST(held_waits_for_the_hint_of_those_that_refused)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    vote(&t, 0, held(-1, 0));
    vote(&t, 1, held(-1, 0));
    ck_assert_uint_eq(t.answers, 0);
    say(&t, 0, ROUND_UNDO, held(700, 42));
    ck_assert_uint_eq(t.answers, 0);
    say(&t, 1, ROUND_UNDO, held(900, 42));
    assert_settled(&t, OUTCOME_HELD);
    /* Free on a quorum once two of three are: node 0 first, then node 1; node 2 said nothing. */
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), 900);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns + 100 * NS_PER_MS), 800);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns + NS_PER_S), 0);
}
END_TEST

START_TEST(held_waits_no_longer_than_the_deadline)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    vote(&t, 0, held(-1, 0));
    vote(&t, 1, held(-1, 0));
    deadline(&t);
    assert_settled(&t, OUTCOME_HELD);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), -1);
}
END_TEST

START_TEST(hint_is_unknown_after_a_split_vote)
{
    struct trial t;
    begin(&t, 5, ROUND_ACQUIRE);
    vote(&t, 0, yes);
    vote(&t, 1, held(-1, 0));
    vote(&t, 2, held(-1, 0));
    vote(&t, 3, held(-1, 0));
    vote(&t, 4, yes);
    say(&t, 1, ROUND_UNDO, held(5000, 1));
    say(&t, 2, ROUND_UNDO, held(6000, 2));
    say(&t, 3, ROUND_UNDO, held(7000, 3));
    assert_settled(&t, OUTCOME_HELD);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), -1);
}
END_TEST

START_TEST(a_key_that_went_meanwhile_counts_as_free)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    vote(&t, 0, held(-1, 0));
    vote(&t, 1, held(-1, 0));
    vote(&t, 2, held(-1, 0));
    say(&t, 0, ROUND_UNDO, absent);
    say(&t, 1, ROUND_UNDO, held(300, 7));
    say(&t, 2, ROUND_UNDO, held(400, 7));
    assert_settled(&t, OUTCOME_HELD);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), 300);
}
END_TEST

START_TEST(late_quorum_is_undone)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    t.round.ttl_ns = 20 * NS_PER_MS; /* drift takes 10.2 ms of it */
    vote(&t, 0, yes);
    t.now_ns += 8800001;
    vote(&t, 1, yes);
    assert_settled(&t, OUTCOME_LATE);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x7);
}
END_TEST

START_TEST(the_last_moment_of_validity_is_granted)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    t.round.ttl_ns = 20 * NS_PER_MS;
    vote(&t, 0, yes);
    t.now_ns += 8800000; /* exactly min_validity is left */
    vote(&t, 1, yes);
    assert_settled(&t, OUTCOME_OK);
}
END_TEST

START_TEST(an_answer_after_node_timeout_is_no_vote_though_the_timer_has_not_fired)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    vote(&t, 0, yes);
    t.now_ns = round_deadline_ns(&t.round) + 1;
    vote(&t, 1, yes);
    ck_assert_uint_eq(t.answers, 0);
    ck_assert_int_eq(t.round.reasons[1], REASON_TIMEOUT);
    vote(&t, 2, yes);
    assert_settled(&t, OUTCOME_NOQUORUM);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x7);
}
END_TEST

START_TEST(an_answer_at_node_timeout_is_a_vote)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    t.now_ns = round_deadline_ns(&t.round);
    vote(&t, 0, yes);
    vote(&t, 1, yes);
    assert_settled(&t, OUTCOME_OK);
}
END_TEST

START_TEST(a_cancelled_acquire_is_undone_and_not_answered)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    vote(&t, 0, yes);
    step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x7);
    vote(&t, 1, yes);
    vote(&t, 2, yes);
    for (unsigned i = 0; i < 3; i++)
        say(&t, i, ROUND_UNDO, yes);
    ck_assert(round_is_finished(&t.round));
    ck_assert_uint_eq(t.answers, 0);
}
END_TEST

START_TEST(a_cancel_while_waiting_for_a_hint_undoes_nothing_twice)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    vote(&t, 0, held(-1, 0));
    vote(&t, 1, held(-1, 0));
    step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.last.send_to, 0);
    ck_assert_int_eq(t.round.phase, ROUND_SETTLED);
}
END_TEST

START_TEST(a_cancel_after_the_grant_undoes_nothing)
{
    struct trial t;
    begin(&t, 3, ROUND_ACQUIRE);
    vote(&t, 0, yes);
    vote(&t, 1, yes);
    step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
}
END_TEST

START_TEST(a_bare_majority_is_filled_in_where_it_was_refused)
{
    struct trial t;
    begin(&t, 5, ROUND_ACQUIRE);
    vote(&t, 0, yes);
    vote(&t, 1, held(-1, 0));
    vote(&t, 2, yes);
    t.now_ns += 3 * NS_PER_MS;
    vote(&t, 3, yes);
    assert_settled(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_PLANT], 0x2);
    ck_assert_int_eq(round_plant_ttl_ms(&t.round, t.now_ns), TTL_MS - 3);
    /* Never later: a straggler's refusal plants nothing. */
    vote(&t, 4, held(-1, 0));
    ck_assert_uint_eq(t.sent[ROUND_PLANT], 0x2);
    say(&t, 1, ROUND_PLANT, held(-1, 0));
    ck_assert(round_is_finished(&t.round));
}
END_TEST

/* --- extend --- */

START_TEST(extension_plants_only_after_a_quorum)
{
    struct trial t;
    begin(&t, 5, ROUND_EXTEND);
    vote(&t, 0, absent);
    vote(&t, 1, yes);
    vote(&t, 2, yes);
    ck_assert_uint_eq(t.sent[ROUND_PLANT], 0);
    vote(&t, 3, yes);
    assert_settled(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_PLANT], 0x1);
}
END_TEST

START_TEST(extension_plants_where_a_straggler_lacks_the_key)
{
    struct trial t;
    begin(&t, 5, ROUND_EXTEND);
    vote(&t, 0, yes);
    vote(&t, 1, yes);
    vote(&t, 2, yes);
    assert_settled(&t, OUTCOME_OK);
    t.now_ns += 5 * NS_PER_MS;
    vote(&t, 3, absent);
    ck_assert_uint_eq(t.sent[ROUND_PLANT], 0x8);
    ck_assert_int_eq(round_plant_ttl_ms(&t.round, t.now_ns), TTL_MS - 5);
    /* But not once it is late, nor once the token is being released. */
    t.now_ns = round_deadline_ns(&t.round) + 1;
    vote(&t, 4, absent);
    ck_assert_uint_eq(t.sent[ROUND_PLANT], 0x8);
}
END_TEST

START_TEST(a_straggler_plants_nothing_once_the_token_is_being_released)
{
    struct trial t;
    begin(&t, 3, ROUND_EXTEND);
    vote(&t, 0, yes);
    vote(&t, 1, yes);
    step(&t, (struct round_event){.type = ROUND_EVENT_RELEASING});
    vote(&t, 2, absent);
    ck_assert_uint_eq(t.sent[ROUND_PLANT], 0);
    ck_assert(round_is_finished(&t.round));
}
END_TEST

START_TEST(extension_plants_nothing_for_a_token_being_released)
{
    struct trial t;
    begin(&t, 3, ROUND_EXTEND);
    vote(&t, 0, absent);
    step(&t, (struct round_event){.type = ROUND_EVENT_RELEASING});
    vote(&t, 1, yes);
    vote(&t, 2, yes);
    assert_settled(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_PLANT], 0);
}
END_TEST

START_TEST(a_denied_extension_is_gone_and_undoes_nothing)
{
    struct trial t;
    begin(&t, 3, ROUND_EXTEND);
    vote(&t, 0, yes);
    vote(&t, 1, absent);
    ck_assert_uint_eq(t.answers, 0);
    vote(&t, 2, held(100, 9));
    assert_settled(&t, OUTCOME_GONE);
    ck_assert(round_is_finished(&t.round));
}
END_TEST

START_TEST(an_undecided_extension_is_no_quorum_not_gone)
{
    struct trial t;
    begin(&t, 3, ROUND_EXTEND);
    vote(&t, 0, yes);
    vote(&t, 1, absent);
    deadline(&t);
    assert_settled(&t, OUTCOME_NOQUORUM);
    ck_assert_uint_eq(round_voting(&t.round), 2);
    ck_assert_int_eq(t.round.reasons[2], REASON_TIMEOUT);
}
END_TEST

START_TEST(a_late_extension_undoes_nothing)
{
    struct trial t;
    begin(&t, 3, ROUND_EXTEND);
    t.round.ttl_ns = 20 * NS_PER_MS;
    t.now_ns += 30 * NS_PER_MS;
    vote(&t, 0, yes);
    vote(&t, 1, yes);
    assert_settled(&t, OUTCOME_LATE);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    ck_assert_uint_eq(t.sent[ROUND_PLANT], 0);
}
END_TEST

/* --- release and status --- */

START_TEST(a_release_goes_wherever_it_can_even_without_a_quorum)
{
    struct trial t;
    begin_with(&t, 5, ROUND_RELEASE, 0x11);
    ck_assert_uint_eq(t.sent[ROUND_VOTE], 0x11);
    assert_settled(&t, OUTCOME_NOQUORUM);
    vote(&t, 0, yes);
    vote(&t, 4, yes);
    ck_assert(round_is_finished(&t.round));
}
END_TEST

START_TEST(a_cancelled_status_is_not_answered)
{
    struct trial t;
    begin(&t, 3, ROUND_STATUS);
    step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.answers, 0);
    ck_assert_uint_eq(t.last.send_to, 0);
}
END_TEST

START_TEST(status_tells_the_holder_of_a_quorum_from_several_minorities)
{
    struct trial t;
    begin(&t, 5, ROUND_STATUS);
    vote(&t, 0, held(1000, 1));
    vote(&t, 1, held(1000, 2));
    vote(&t, 2, held(1000, 1));
    vote(&t, 3, held(1000, 2));
    ck_assert_uint_eq(t.answers, 0);
    vote(&t, 4, absent);
    assert_settled(&t, OUTCOME_FREE);
}
END_TEST

START_TEST(a_settled_round_ignores_its_deadline)
{
    struct trial t;
    begin(&t, 3, ROUND_STATUS);
    vote(&t, 0, absent);
    vote(&t, 1, absent);
    assert_settled(&t, OUTCOME_FREE);
    deadline(&t);
    ck_assert(!t.last.answer);
}
END_TEST

/* --- every pattern ------------------------------------------------------------------------------
 *
 * Each node does one of six things; so there are 6^3 and 6^5 patterns for each kind of round.
 */

enum fault { SAYS_YES, SAYS_ABSENT, SAYS_HELD, SAYS_ERROR, IS_SILENT, IS_DOWN, FAULTS };

struct tally {
    unsigned yes, absent, held, silent, failed, down;
};

/* What the outcome has to be once everything is known, by the words of the protocol. */
static enum outcome expected(enum round_kind kind, unsigned nodes, const struct tally *tally)
{
    unsigned quorum = nodes / 2 + 1;
    unsigned voted = tally->yes + tally->absent + tally->held;
    unsigned unknown = tally->silent + tally->failed + tally->down;
    if (kind != ROUND_RELEASE && nodes - tally->down < quorum)
        return OUTCOME_NOQUORUM;
    switch (kind) {
    case ROUND_ACQUIRE:
        if (tally->yes >= quorum)
            return OUTCOME_OK;
        return voted >= quorum ? OUTCOME_HELD : OUTCOME_NOQUORUM;
    case ROUND_EXTEND:
        if (tally->yes >= quorum)
            return OUTCOME_OK;
        return tally->absent + tally->held > nodes - quorum ? OUTCOME_GONE : OUTCOME_NOQUORUM;
    case ROUND_RELEASE:
        if (tally->yes >= quorum)
            return OUTCOME_OK;
        return voted >= quorum ? OUTCOME_GONE : OUTCOME_NOQUORUM;
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
        return yes;
    case SAYS_ABSENT:
        return absent;
    case SAYS_HELD:
        return held(1000, 77);
    case SAYS_ERROR:
    case IS_SILENT:
    case IS_DOWN:
    case FAULTS:
        break;
    }
    return oom;
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
    begin_with(&t, nodes, kind, reachable);
    for (unsigned k = 0; k < nodes; k++) {
        unsigned i = (first + k) % nodes;
        if (t.sent[ROUND_VOTE] >> i & 1 && faults[i] != IS_SILENT)
            vote(&t, i, answer_of(faults[i]));
    }
    if (t.round.phase != ROUND_SETTLED)
        deadline(&t);

    struct tally tally = count_faults(nodes, faults);
    assert_settled(&t, expected(kind, nodes, &tally));
    if (kind == ROUND_ACQUIRE)
        ck_assert_uint_eq(t.sent[ROUND_UNDO],
                          t.round.outcome == OUTCOME_OK ? 0 : t.sent[ROUND_VOTE]);
    else
        ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    if (t.round.outcome != OUTCOME_OK)
        ck_assert_uint_eq(t.sent[ROUND_PLANT], 0);

    /* A hang that ends later changes nothing, and then nothing is left under way. */
    t.now_ns += 60 * NS_PER_S;
    for (unsigned i = 0; i < nodes; i++) {
        if (t.round.under_way[ROUND_VOTE] >> i & 1)
            vote(&t, i, yes);
        if (t.sent[ROUND_UNDO] >> i & 1)
            say(&t, i, ROUND_UNDO, yes);
        if (t.sent[ROUND_PLANT] >> i & 1)
            say(&t, i, ROUND_PLANT, yes);
    }
    assert_settled(&t, expected(kind, nodes, &tally));
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
    Suite *suite = suite_create("round");
    TCase *cases = tcase_create("round");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, grants_at_quorum_not_before);
    tcase_add_test(cases, a_yes_that_decides_nothing_is_counted_quietly);
    tcase_add_test(cases, a_late_yes_is_not_counted_quietly);
    tcase_add_test(cases, a_yes_out_of_reach_of_a_quorum_is_not_counted_quietly);
    tcase_add_test(cases, a_yes_to_a_status_is_not_counted_quietly);
    tcase_add_test(cases, finished_once_the_stragglers_have_answered);
    tcase_add_test(cases, failed_acquire_is_undone_on_every_node_it_was_sent_to);
    tcase_add_test(cases, nothing_is_asked_where_no_quorum_is_reachable);
    tcase_add_test(cases, held_waits_for_the_hint_of_those_that_refused);
    tcase_add_test(cases, held_waits_no_longer_than_the_deadline);
    tcase_add_test(cases, hint_is_unknown_after_a_split_vote);
    tcase_add_test(cases, a_key_that_went_meanwhile_counts_as_free);
    tcase_add_test(cases, late_quorum_is_undone);
    tcase_add_test(cases, the_last_moment_of_validity_is_granted);
    tcase_add_test(cases, an_answer_after_node_timeout_is_no_vote_though_the_timer_has_not_fired);
    tcase_add_test(cases, an_answer_at_node_timeout_is_a_vote);
    tcase_add_test(cases, a_cancelled_acquire_is_undone_and_not_answered);
    tcase_add_test(cases, a_cancel_while_waiting_for_a_hint_undoes_nothing_twice);
    tcase_add_test(cases, a_cancel_after_the_grant_undoes_nothing);
    tcase_add_test(cases, a_bare_majority_is_filled_in_where_it_was_refused);
    tcase_add_test(cases, extension_plants_only_after_a_quorum);
    tcase_add_test(cases, extension_plants_where_a_straggler_lacks_the_key);
    tcase_add_test(cases, a_straggler_plants_nothing_once_the_token_is_being_released);
    tcase_add_test(cases, extension_plants_nothing_for_a_token_being_released);
    tcase_add_test(cases, a_denied_extension_is_gone_and_undoes_nothing);
    tcase_add_test(cases, an_undecided_extension_is_no_quorum_not_gone);
    tcase_add_test(cases, a_late_extension_undoes_nothing);
    tcase_add_test(cases, a_release_goes_wherever_it_can_even_without_a_quorum);
    tcase_add_test(cases, a_cancelled_status_is_not_answered);
    tcase_add_test(cases, status_tells_the_holder_of_a_quorum_from_several_minorities);
    tcase_add_test(cases, a_settled_round_ignores_its_deadline);
    tcase_add_loop_test(cases, every_pattern_of_three_nodes_has_the_outcome_of_the_table,
                        ROUND_ACQUIRE, ROUND_STATUS + 1);
    tcase_add_loop_test(cases, every_pattern_of_five_nodes_has_the_outcome_of_the_table,
                        ROUND_ACQUIRE, ROUND_STATUS + 1);
    suite_add_tcase(suite, cases);
    return suite;
}
