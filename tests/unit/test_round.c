/*
 * engine/round/round.h: one quorum round, on virtual time. test_patterns.c tries every pattern of
 * answers.
 */
#include "engine/round/node_set.h"
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/round_fixture.h"

static struct round_fixture t;

/* --- acquire --- */

TEST(round_is_granted_at_a_quorum_and_not_before)
{
    fixture_begin(&t, 5, ROUND_ACQUIRE);
    ck_assert_uint_eq(t.sent[ROUND_VOTE], 0x1f);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 3, answer_yes);
    ck_assert_uint_eq(t.answers, 0);
    fixture_vote(&t, 1, answer_yes);
    fixture_expect(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    /* 10 s minus 1 % minus 10 ms; no time has passed. */
    ck_assert_int_eq(round_validity_ns(&t.round, t.now_ns), 9890 * NS_PER_MS);
}

TEST(yes_that_decides_nothing_is_counted_by_the_fast_path)
{
    fixture_begin(&t, 5, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_yes);
    ck_assert_uint_eq(t.fast_votes, 2);
    fixture_vote(&t, 2, answer_yes);
    ck_assert_uint_eq(t.fast_votes, 2);
    fixture_expect(&t, OUTCOME_OK);
    t.now_ns += 60 * NS_PER_S;
    fixture_vote(&t, 3, answer_yes);
    ck_assert_uint_eq(t.fast_votes, 3);
}

TEST(late_yes_is_not_counted_by_the_fast_path)
{
    fixture_begin(&t, 5, ROUND_ACQUIRE);
    t.now_ns = round_deadline_ns(&t.round) + 1;
    fixture_vote(&t, 0, answer_yes);
    ck_assert_uint_eq(t.fast_votes, 0);
    ck_assert_uint_eq(t.round.failed, 1);
}

TEST(yes_without_a_possible_quorum_is_not_counted_by_the_fast_path)
{
    fixture_begin(&t, 5, ROUND_RELEASE);
    fixture_vote(&t, 0, answer_absent);
    fixture_vote(&t, 1, answer_absent);
    fixture_vote(&t, 2, answer_oom);
    fixture_vote(&t, 3, answer_yes);
    ck_assert_uint_eq(t.fast_votes, 0);
    fixture_vote(&t, 4, answer_absent);
    fixture_expect(&t, OUTCOME_GONE);
}

TEST(yes_to_a_status_is_not_counted_by_the_fast_path)
{
    fixture_begin(&t, 3, ROUND_STATUS);
    fixture_vote(&t, 0, answer_yes);
    ck_assert_uint_eq(t.fast_votes, 0);
}

TEST(round_is_finished_once_the_last_node_has_answered)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_yes);
    ck_assert(!round_is_finished(&t.round));
    t.now_ns += 60 * NS_PER_S;
    fixture_vote(&t, 2, answer_yes);
    ck_assert(round_is_finished(&t.round));
    ck_assert_uint_eq(t.answers, 1);
}

TEST(failed_acquire_is_undone_on_every_node_it_was_sent_to)
{
    fixture_begin(&t, 5, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_oom);
    fixture_vote(&t, 2, answer_held(-1, 0));
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    fixture_vote(&t, 3, answer_held(-1, 0));
    /* The undo also goes to nodes that failed, refused or have not answered, because the SET can
     * still be executed there. */
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x1f);
}

TEST(round_without_a_reachable_quorum_sends_nothing)
{
    fixture_begin_with(&t, 5, ROUND_ACQUIRE, 0x03);
    fixture_expect(&t, OUTCOME_NOQUORUM);
    ck_assert_uint_eq(t.sent[ROUND_VOTE], 0);
    ck_assert(round_is_finished(&t.round));
    ck_assert_uint_eq(t.round.rules->node_count - nodes_count(t.round.failed), 2);
    ck_assert_int_eq(t.round.reasons[4], REASON_REFUSED);
    ck_assert_int_eq(t.round.reasons[0], REASON_NONE);
}

TEST(held_waits_for_the_ttls_of_the_refusing_nodes)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_held(-1, 0));
    fixture_vote(&t, 1, answer_held(-1, 0));
    ck_assert_uint_eq(t.answers, 0);
    fixture_answer(&t, 0, ROUND_UNDO, answer_held(700, 42));
    ck_assert_uint_eq(t.answers, 0);
    fixture_answer(&t, 1, ROUND_UNDO, answer_held(900, 42));
    fixture_expect(&t, OUTCOME_HELD);
    /* A quorum is free once two of three keys have expired: node 0, then node 1. Node 2 has not
     * answered. */
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), 900);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns + 100 * NS_PER_MS), 800);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns + NS_PER_S), 0);
}

TEST(held_waits_no_longer_than_the_deadline)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_held(-1, 0));
    fixture_vote(&t, 1, answer_held(-1, 0));
    fixture_reach_deadline(&t);
    fixture_expect(&t, OUTCOME_HELD);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), -1);
}

TEST(hint_is_unknown_after_a_split_vote)
{
    fixture_begin(&t, 5, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_held(-1, 0));
    fixture_vote(&t, 2, answer_held(-1, 0));
    fixture_vote(&t, 3, answer_held(-1, 0));
    fixture_vote(&t, 4, answer_yes);
    fixture_answer(&t, 1, ROUND_UNDO, answer_held(5000, 1));
    fixture_answer(&t, 2, ROUND_UNDO, answer_held(6000, 2));
    fixture_answer(&t, 3, ROUND_UNDO, answer_held(7000, 3));
    fixture_expect(&t, OUTCOME_HELD);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), -1);
}

TEST(key_that_expired_before_the_undo_counts_as_free)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_held(-1, 0));
    fixture_vote(&t, 1, answer_held(-1, 0));
    fixture_vote(&t, 2, answer_held(-1, 0));
    fixture_answer(&t, 0, ROUND_UNDO, answer_absent);
    fixture_answer(&t, 1, ROUND_UNDO, answer_held(300, 7));
    fixture_answer(&t, 2, ROUND_UNDO, answer_held(400, 7));
    fixture_expect(&t, OUTCOME_HELD);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), 300);
}

TEST(late_quorum_is_undone)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    t.round.ttl_ns = 20 * NS_PER_MS; /* the drift takes 10.2 ms of it */
    fixture_vote(&t, 0, answer_yes);
    t.now_ns += 8800001;
    fixture_vote(&t, 1, answer_yes);
    fixture_expect(&t, OUTCOME_LATE);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x7);
}

TEST(quorum_with_min_validity_left_is_granted)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    t.round.ttl_ns = 20 * NS_PER_MS;
    fixture_vote(&t, 0, answer_yes);
    t.now_ns += 8800000; /* exactly min_validity is left */
    fixture_vote(&t, 1, answer_yes);
    fixture_expect(&t, OUTCOME_OK);
}

TEST(answer_after_node_timeout_is_no_vote_even_before_the_timer)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_yes);
    t.now_ns = round_deadline_ns(&t.round) + 1;
    fixture_vote(&t, 1, answer_yes);
    ck_assert_uint_eq(t.answers, 0);
    ck_assert_int_eq(t.round.reasons[1], REASON_TIMEOUT);
    fixture_vote(&t, 2, answer_yes);
    fixture_expect(&t, OUTCOME_NOQUORUM);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x7);
}

TEST(answer_at_node_timeout_is_a_vote)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    t.now_ns = round_deadline_ns(&t.round);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_yes);
    fixture_expect(&t, OUTCOME_OK);
}

TEST(cancelled_acquire_is_undone_and_not_answered)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_yes);
    fixture_step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x7);
    fixture_vote(&t, 1, answer_yes);
    fixture_vote(&t, 2, answer_yes);
    for (unsigned i = 0; i < 3; i++)
        fixture_answer(&t, i, ROUND_UNDO, answer_yes);
    ck_assert(round_is_finished(&t.round));
    ck_assert_uint_eq(t.answers, 0);
}

TEST(cancel_while_waiting_for_a_hint_undoes_nothing_twice)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_held(-1, 0));
    fixture_vote(&t, 1, answer_held(-1, 0));
    fixture_step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.last.send_to, 0);
    ck_assert_int_eq(t.round.phase, ROUND_SETTLED);
}

TEST(cancel_after_the_grant_undoes_nothing)
{
    fixture_begin(&t, 3, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_yes);
    fixture_step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
}

TEST(bare_majority_is_backfilled_where_it_was_refused)
{
    fixture_begin(&t, 5, ROUND_ACQUIRE);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_held(-1, 0));
    fixture_vote(&t, 2, answer_yes);
    t.now_ns += 3 * NS_PER_MS;
    fixture_vote(&t, 3, answer_yes);
    fixture_expect(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x2);
    ck_assert_int_eq(round_backfill_ttl_ms(&t.round, t.now_ns), FIXTURE_TTL_MS - 3);
    /* A refusal after the grant causes no backfill. */
    fixture_vote(&t, 4, answer_held(-1, 0));
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x2);
    fixture_answer(&t, 1, ROUND_BACKFILL, answer_held(-1, 0));
    ck_assert(round_is_finished(&t.round));
}

/* --- extend --- */

TEST(extension_backfills_only_after_a_quorum)
{
    fixture_begin(&t, 5, ROUND_EXTEND);
    fixture_vote(&t, 0, answer_absent);
    fixture_vote(&t, 1, answer_yes);
    fixture_vote(&t, 2, answer_yes);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);
    fixture_vote(&t, 3, answer_yes);
    fixture_expect(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x1);
}

TEST(extension_backfills_where_a_late_node_lacks_the_key)
{
    fixture_begin(&t, 5, ROUND_EXTEND);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_yes);
    fixture_vote(&t, 2, answer_yes);
    fixture_expect(&t, OUTCOME_OK);
    t.now_ns += 5 * NS_PER_MS;
    fixture_vote(&t, 3, answer_absent);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x8);
    ck_assert_int_eq(round_backfill_ttl_ms(&t.round, t.now_ns), FIXTURE_TTL_MS - 5);
    /* There is no backfill after the deadline. */
    t.now_ns = round_deadline_ns(&t.round) + 1;
    fixture_vote(&t, 4, answer_absent);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x8);
}

TEST(late_answer_backfills_nothing_during_a_release)
{
    fixture_begin(&t, 3, ROUND_EXTEND);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_yes);
    fixture_step(&t, (struct round_event){.type = ROUND_EVENT_RELEASING});
    fixture_vote(&t, 2, answer_absent);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);
    ck_assert(round_is_finished(&t.round));
}

TEST(extension_during_a_release_is_gone_and_backfills_nothing)
{
    fixture_begin(&t, 3, ROUND_EXTEND);
    fixture_vote(&t, 0, answer_absent);
    fixture_step(&t, (struct round_event){.type = ROUND_EVENT_RELEASING});
    fixture_vote(&t, 1, answer_yes);
    fixture_vote(&t, 2, answer_yes);
    fixture_expect(&t, OUTCOME_GONE);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);
}

TEST(denied_extension_is_gone_and_undoes_nothing)
{
    fixture_begin(&t, 3, ROUND_EXTEND);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_absent);
    ck_assert_uint_eq(t.answers, 0);
    fixture_vote(&t, 2, answer_held(100, 9));
    fixture_expect(&t, OUTCOME_GONE);
    ck_assert(round_is_finished(&t.round));
}

TEST(undecided_extension_is_no_quorum_and_not_gone)
{
    fixture_begin(&t, 3, ROUND_EXTEND);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_absent);
    fixture_reach_deadline(&t);
    fixture_expect(&t, OUTCOME_NOQUORUM);
    ck_assert_uint_eq(t.round.rules->node_count - nodes_count(t.round.failed), 2);
    ck_assert_int_eq(t.round.reasons[2], REASON_TIMEOUT);
}

TEST(late_extension_undoes_nothing)
{
    fixture_begin(&t, 3, ROUND_EXTEND);
    t.round.ttl_ns = 20 * NS_PER_MS;
    t.now_ns += 30 * NS_PER_MS;
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 1, answer_yes);
    fixture_expect(&t, OUTCOME_LATE);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);
}

/* --- release and status --- */

TEST(release_goes_to_all_reachable_nodes_without_a_quorum)
{
    fixture_begin_with(&t, 5, ROUND_RELEASE, 0x11);
    ck_assert_uint_eq(t.sent[ROUND_VOTE], 0x11);
    fixture_expect(&t, OUTCOME_NOQUORUM);
    fixture_vote(&t, 0, answer_yes);
    fixture_vote(&t, 4, answer_yes);
    ck_assert(round_is_finished(&t.round));
}

TEST(cancelled_status_is_not_answered)
{
    fixture_begin(&t, 3, ROUND_STATUS);
    fixture_step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.answers, 0);
    ck_assert_uint_eq(t.last.send_to, 0);
}

TEST(status_distinguishes_a_quorum_from_several_minorities)
{
    fixture_begin(&t, 5, ROUND_STATUS);
    fixture_vote(&t, 0, answer_held(1000, 1));
    fixture_vote(&t, 1, answer_held(1000, 2));
    fixture_vote(&t, 2, answer_held(1000, 1));
    fixture_vote(&t, 3, answer_held(1000, 2));
    ck_assert_uint_eq(t.answers, 0);
    fixture_vote(&t, 4, answer_absent);
    fixture_expect(&t, OUTCOME_FREE);
}

/* The deletion after the freeze depends on the answer of each node. */
TEST(freeze_waits_for_all_nodes_or_its_deadline)
{
    fixture_begin(&t, 5, ROUND_FREEZE);
    for (unsigned i = 0; i < 4; i++)
        fixture_vote(&t, i, answer_yes);
    ck_assert_uint_eq(t.fast_votes, 0);
    ck_assert_uint_eq(t.answers, 0);
    fixture_reach_deadline(&t);
    fixture_expect(&t, OUTCOME_OK);
    fixture_begin(&t, 5, ROUND_FREEZE);
    for (unsigned i = 0; i < 4; i++)
        fixture_vote(&t, i, answer_absent);
    ck_assert_uint_eq(t.answers, 0);
    fixture_vote(&t, 4, answer_yes);
    fixture_expect(&t, OUTCOME_GONE);
}

TEST(settled_round_ignores_its_deadline)
{
    fixture_begin(&t, 3, ROUND_STATUS);
    fixture_vote(&t, 0, answer_absent);
    fixture_vote(&t, 1, answer_absent);
    fixture_expect(&t, OUTCOME_FREE);
    fixture_reach_deadline(&t);
    ck_assert(!t.last.answer);
}
