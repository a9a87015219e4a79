/*
 * engine/round/round.h: one quorum round, on virtual time. Every pattern of answers:
 * test_patterns.c.
 */
#include "engine/round/node_set.h"
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/trial.h"

/* --- acquire --- */

START_TEST(grants_at_quorum_not_before)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_ACQUIRE);
    ck_assert_uint_eq(t.sent[ROUND_VOTE], 0x1f);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 3, said_yes);
    ck_assert_uint_eq(t.answers, 0);
    trial_vote(&t, 1, said_yes);
    trial_expect(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    /* 10 s less 1 % less 10 ms, and no time has passed. */
    ck_assert_int_eq(round_validity_ns(&t.round, t.now_ns), 9890 * NS_PER_MS);
}
END_TEST

START_TEST(a_yes_that_decides_nothing_is_counted_quietly)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_yes);
    ck_assert_uint_eq(t.quiet, 2);
    trial_vote(&t, 2, said_yes);
    ck_assert_uint_eq(t.quiet, 2);
    trial_expect(&t, OUTCOME_OK);
    t.now_ns += 60 * NS_PER_S;
    trial_vote(&t, 3, said_yes);
    ck_assert_uint_eq(t.quiet, 3);
}
END_TEST

START_TEST(a_late_yes_is_not_counted_quietly)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_ACQUIRE);
    t.now_ns = round_deadline_ns(&t.round) + 1;
    trial_vote(&t, 0, said_yes);
    ck_assert_uint_eq(t.quiet, 0);
    ck_assert_uint_eq(t.round.failed, 1);
}
END_TEST

START_TEST(a_yes_out_of_reach_of_a_quorum_is_not_counted_quietly)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_RELEASE);
    trial_vote(&t, 0, said_absent);
    trial_vote(&t, 1, said_absent);
    trial_vote(&t, 2, said_oom);
    trial_vote(&t, 3, said_yes);
    ck_assert_uint_eq(t.quiet, 0);
    trial_vote(&t, 4, said_absent);
    trial_expect(&t, OUTCOME_GONE);
}
END_TEST

START_TEST(a_yes_to_a_status_is_not_counted_quietly)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_STATUS);
    trial_vote(&t, 0, said_yes);
    ck_assert_uint_eq(t.quiet, 0);
}
END_TEST

START_TEST(finished_once_the_stragglers_have_answered)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_yes);
    ck_assert(!round_is_finished(&t.round));
    t.now_ns += 60 * NS_PER_S;
    trial_vote(&t, 2, said_yes);
    ck_assert(round_is_finished(&t.round));
    ck_assert_uint_eq(t.answers, 1);
}
END_TEST

START_TEST(failed_acquire_is_undone_on_every_node_it_was_sent_to)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_oom);
    trial_vote(&t, 2, said_held(-1, 0));
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    trial_vote(&t, 3, said_held(-1, 0));
    /* Also where it failed, was refused, or has not answered yet: the SET may still land. */
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x1f);
}
END_TEST

START_TEST(nothing_is_asked_where_no_quorum_is_reachable)
{
    struct trial t;
    trial_begin_with(&t, 5, ROUND_ACQUIRE, 0x03);
    trial_expect(&t, OUTCOME_NOQUORUM);
    ck_assert_uint_eq(t.sent[ROUND_VOTE], 0);
    ck_assert(round_is_finished(&t.round));
    ck_assert_uint_eq(t.round.rules->node_count - nodes_count(t.round.failed), 2);
    ck_assert_int_eq(t.round.reasons[4], REASON_REFUSED);
    ck_assert_int_eq(t.round.reasons[0], REASON_NONE);
}
END_TEST

START_TEST(held_waits_for_the_hint_of_those_that_refused)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_held(-1, 0));
    trial_vote(&t, 1, said_held(-1, 0));
    ck_assert_uint_eq(t.answers, 0);
    trial_say(&t, 0, ROUND_UNDO, said_held(700, 42));
    ck_assert_uint_eq(t.answers, 0);
    trial_say(&t, 1, ROUND_UNDO, said_held(900, 42));
    trial_expect(&t, OUTCOME_HELD);
    /* Free on a quorum once two of three are: node 0 first, then node 1; node 2 said nothing. */
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), 900);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns + 100 * NS_PER_MS), 800);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns + NS_PER_S), 0);
}
END_TEST

START_TEST(held_waits_no_longer_than_the_deadline)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_held(-1, 0));
    trial_vote(&t, 1, said_held(-1, 0));
    trial_reach_deadline(&t);
    trial_expect(&t, OUTCOME_HELD);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), -1);
}
END_TEST

START_TEST(hint_is_unknown_after_a_split_vote)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_held(-1, 0));
    trial_vote(&t, 2, said_held(-1, 0));
    trial_vote(&t, 3, said_held(-1, 0));
    trial_vote(&t, 4, said_yes);
    trial_say(&t, 1, ROUND_UNDO, said_held(5000, 1));
    trial_say(&t, 2, ROUND_UNDO, said_held(6000, 2));
    trial_say(&t, 3, ROUND_UNDO, said_held(7000, 3));
    trial_expect(&t, OUTCOME_HELD);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), -1);
}
END_TEST

START_TEST(a_key_that_went_meanwhile_counts_as_free)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_held(-1, 0));
    trial_vote(&t, 1, said_held(-1, 0));
    trial_vote(&t, 2, said_held(-1, 0));
    trial_say(&t, 0, ROUND_UNDO, said_absent);
    trial_say(&t, 1, ROUND_UNDO, said_held(300, 7));
    trial_say(&t, 2, ROUND_UNDO, said_held(400, 7));
    trial_expect(&t, OUTCOME_HELD);
    ck_assert_int_eq(round_hint_ms(&t.round, t.now_ns), 300);
}
END_TEST

START_TEST(late_quorum_is_undone)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    t.round.ttl_ns = 20 * NS_PER_MS; /* drift takes 10.2 ms of it */
    trial_vote(&t, 0, said_yes);
    t.now_ns += 8800001;
    trial_vote(&t, 1, said_yes);
    trial_expect(&t, OUTCOME_LATE);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x7);
}
END_TEST

START_TEST(the_last_moment_of_validity_is_granted)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    t.round.ttl_ns = 20 * NS_PER_MS;
    trial_vote(&t, 0, said_yes);
    t.now_ns += 8800000; /* exactly min_validity is left */
    trial_vote(&t, 1, said_yes);
    trial_expect(&t, OUTCOME_OK);
}
END_TEST

START_TEST(an_answer_after_node_timeout_is_no_vote_though_the_timer_has_not_fired)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_yes);
    t.now_ns = round_deadline_ns(&t.round) + 1;
    trial_vote(&t, 1, said_yes);
    ck_assert_uint_eq(t.answers, 0);
    ck_assert_int_eq(t.round.reasons[1], REASON_TIMEOUT);
    trial_vote(&t, 2, said_yes);
    trial_expect(&t, OUTCOME_NOQUORUM);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x7);
}
END_TEST

START_TEST(an_answer_at_node_timeout_is_a_vote)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    t.now_ns = round_deadline_ns(&t.round);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_yes);
    trial_expect(&t, OUTCOME_OK);
}
END_TEST

START_TEST(a_cancelled_acquire_is_undone_and_not_answered)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_yes);
    trial_step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0x7);
    trial_vote(&t, 1, said_yes);
    trial_vote(&t, 2, said_yes);
    for (unsigned i = 0; i < 3; i++)
        trial_say(&t, i, ROUND_UNDO, said_yes);
    ck_assert(round_is_finished(&t.round));
    ck_assert_uint_eq(t.answers, 0);
}
END_TEST

START_TEST(a_cancel_while_waiting_for_a_hint_undoes_nothing_twice)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_held(-1, 0));
    trial_vote(&t, 1, said_held(-1, 0));
    trial_step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.last.send_to, 0);
    ck_assert_int_eq(t.round.phase, ROUND_SETTLED);
}
END_TEST

START_TEST(a_cancel_after_the_grant_undoes_nothing)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_yes);
    trial_step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
}
END_TEST

START_TEST(a_bare_majority_is_filled_in_where_it_was_refused)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_ACQUIRE);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_held(-1, 0));
    trial_vote(&t, 2, said_yes);
    t.now_ns += 3 * NS_PER_MS;
    trial_vote(&t, 3, said_yes);
    trial_expect(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x2);
    ck_assert_int_eq(round_backfill_ttl_ms(&t.round, t.now_ns), TRIAL_TTL_MS - 3);
    /* Never later: a straggler's refusal backfills nothing. */
    trial_vote(&t, 4, said_held(-1, 0));
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x2);
    trial_say(&t, 1, ROUND_BACKFILL, said_held(-1, 0));
    ck_assert(round_is_finished(&t.round));
}
END_TEST

/* --- extend --- */

START_TEST(extension_backfills_only_after_a_quorum)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_EXTEND);
    trial_vote(&t, 0, said_absent);
    trial_vote(&t, 1, said_yes);
    trial_vote(&t, 2, said_yes);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);
    trial_vote(&t, 3, said_yes);
    trial_expect(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x1);
}
END_TEST

START_TEST(extension_backfills_where_a_straggler_lacks_the_key)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_EXTEND);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_yes);
    trial_vote(&t, 2, said_yes);
    trial_expect(&t, OUTCOME_OK);
    t.now_ns += 5 * NS_PER_MS;
    trial_vote(&t, 3, said_absent);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x8);
    ck_assert_int_eq(round_backfill_ttl_ms(&t.round, t.now_ns), TRIAL_TTL_MS - 5);
    /* But not once it is late, nor once the token is being released. */
    t.now_ns = round_deadline_ns(&t.round) + 1;
    trial_vote(&t, 4, said_absent);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0x8);
}
END_TEST

START_TEST(a_straggler_backfills_nothing_once_the_token_is_being_released)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_EXTEND);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_yes);
    trial_step(&t, (struct round_event){.type = ROUND_EVENT_RELEASING});
    trial_vote(&t, 2, said_absent);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);
    ck_assert(round_is_finished(&t.round));
}
END_TEST

START_TEST(extension_backfills_nothing_for_a_token_being_released)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_EXTEND);
    trial_vote(&t, 0, said_absent);
    trial_step(&t, (struct round_event){.type = ROUND_EVENT_RELEASING});
    trial_vote(&t, 1, said_yes);
    trial_vote(&t, 2, said_yes);
    trial_expect(&t, OUTCOME_OK);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);
}
END_TEST

START_TEST(a_denied_extension_is_gone_and_undoes_nothing)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_EXTEND);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_absent);
    ck_assert_uint_eq(t.answers, 0);
    trial_vote(&t, 2, said_held(100, 9));
    trial_expect(&t, OUTCOME_GONE);
    ck_assert(round_is_finished(&t.round));
}
END_TEST

START_TEST(an_undecided_extension_is_no_quorum_not_gone)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_EXTEND);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_absent);
    trial_reach_deadline(&t);
    trial_expect(&t, OUTCOME_NOQUORUM);
    ck_assert_uint_eq(t.round.rules->node_count - nodes_count(t.round.failed), 2);
    ck_assert_int_eq(t.round.reasons[2], REASON_TIMEOUT);
}
END_TEST

START_TEST(a_late_extension_undoes_nothing)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_EXTEND);
    t.round.ttl_ns = 20 * NS_PER_MS;
    t.now_ns += 30 * NS_PER_MS;
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 1, said_yes);
    trial_expect(&t, OUTCOME_LATE);
    ck_assert_uint_eq(t.sent[ROUND_UNDO], 0);
    ck_assert_uint_eq(t.sent[ROUND_BACKFILL], 0);
}
END_TEST

/* --- release and status --- */

START_TEST(a_release_goes_wherever_it_can_even_without_a_quorum)
{
    struct trial t;
    trial_begin_with(&t, 5, ROUND_RELEASE, 0x11);
    ck_assert_uint_eq(t.sent[ROUND_VOTE], 0x11);
    trial_expect(&t, OUTCOME_NOQUORUM);
    trial_vote(&t, 0, said_yes);
    trial_vote(&t, 4, said_yes);
    ck_assert(round_is_finished(&t.round));
}
END_TEST

START_TEST(a_cancelled_status_is_not_answered)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_STATUS);
    trial_step(&t, (struct round_event){.type = ROUND_EVENT_CANCEL});
    ck_assert_uint_eq(t.answers, 0);
    ck_assert_uint_eq(t.last.send_to, 0);
}
END_TEST

START_TEST(status_tells_the_holder_of_a_quorum_from_several_minorities)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_STATUS);
    trial_vote(&t, 0, said_held(1000, 1));
    trial_vote(&t, 1, said_held(1000, 2));
    trial_vote(&t, 2, said_held(1000, 1));
    trial_vote(&t, 3, said_held(1000, 2));
    ck_assert_uint_eq(t.answers, 0);
    trial_vote(&t, 4, said_absent);
    trial_expect(&t, OUTCOME_FREE);
}
END_TEST

/* What is deleted afterwards depends on each of them. */
START_TEST(freeze_waits_for_all_nodes_or_its_deadline)
{
    struct trial t;
    trial_begin(&t, 5, ROUND_FREEZE);
    for (unsigned i = 0; i < 4; i++)
        trial_vote(&t, i, said_yes);
    ck_assert_uint_eq(t.quiet, 0);
    ck_assert_uint_eq(t.answers, 0);
    trial_reach_deadline(&t);
    trial_expect(&t, OUTCOME_OK);
    trial_begin(&t, 5, ROUND_FREEZE);
    for (unsigned i = 0; i < 4; i++)
        trial_vote(&t, i, said_absent);
    ck_assert_uint_eq(t.answers, 0);
    trial_vote(&t, 4, said_yes);
    trial_expect(&t, OUTCOME_GONE);
}
END_TEST

START_TEST(a_settled_round_ignores_its_deadline)
{
    struct trial t;
    trial_begin(&t, 3, ROUND_STATUS);
    trial_vote(&t, 0, said_absent);
    trial_vote(&t, 1, said_absent);
    trial_expect(&t, OUTCOME_FREE);
    trial_reach_deadline(&t);
    ck_assert(!t.last.answer);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("round");
    TCase *cases = tcase_create("round");
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
    tcase_add_test(cases, extension_backfills_only_after_a_quorum);
    tcase_add_test(cases, extension_backfills_where_a_straggler_lacks_the_key);
    tcase_add_test(cases, a_straggler_backfills_nothing_once_the_token_is_being_released);
    tcase_add_test(cases, extension_backfills_nothing_for_a_token_being_released);
    tcase_add_test(cases, a_denied_extension_is_gone_and_undoes_nothing);
    tcase_add_test(cases, an_undecided_extension_is_no_quorum_not_gone);
    tcase_add_test(cases, a_late_extension_undoes_nothing);
    tcase_add_test(cases, a_release_goes_wherever_it_can_even_without_a_quorum);
    tcase_add_test(cases, a_cancelled_status_is_not_answered);
    tcase_add_test(cases, status_tells_the_holder_of_a_quorum_from_several_minorities);
    tcase_add_test(cases, freeze_waits_for_all_nodes_or_its_deadline);
    tcase_add_test(cases, a_settled_round_ignores_its_deadline);
    suite_add_tcase(suite, cases);
    return suite;
}
