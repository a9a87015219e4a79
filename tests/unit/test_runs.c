/*
 * Plain votes that are asked for one behind the other and go as a run, by one outstanding: in the
 * engine, on fake masters and virtual time.
 */
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster.h"

static struct cluster w;

static void three(void)
{
    cluster_init(&w, 3);
}

static void end(void)
{
    cluster_deinit(&w);
}

static void ask_for(const char *names)
{
    for (; *names != '\0'; names++)
        cluster_send(&w, "#%c LOCK %c 10s", *names, *names);
}

/* One behind the other. */
static void expect_grants(const char *names)
{
    for (; *names != '\0'; names++)
        cluster_expect_grant(&w, (char[]){*names, '\0'});
}

/* So many answers of OK, as they come from one read. Returns how many were taken. */
static unsigned say_ok(unsigned node, unsigned count)
{
    static const struct redis_reply ok = {.kind = RESP_STATUS, .str = "OK", .len = 2};
    return engine_on_replies(&w.engine, node, CHANNEL_COMMANDS, &ok, count, w.now_ns);
}

static void expect_outstanding(unsigned node, unsigned outstanding, unsigned load)
{
    ck_assert_uint_eq(w.engine.flights.masters[node].link.outstanding_count, outstanding);
    ck_assert_uint_eq(w.engine.flights.masters[node].link.load, load);
}

static void mute(bool are_mute)
{
    for (unsigned i = 0; i < w.node_count; i++)
        w.masters[i].mute = are_mute;
}

START_TEST(votes_of_one_pass_have_one_entry_and_count_each)
{
    ask_for("abc");
    for (unsigned i = 0; i < 3; i++)
        expect_outstanding(i, 1, 3);
    cluster_settle(&w);
    expect_grants("abc");
    expect_outstanding(0, 0, 0);
}
END_TEST

START_TEST(another_command_ends_a_run)
{
    ask_for("ab");
    cluster_send(&w, "#f LOCK f 10s FENCE");
    ask_for("cd");
    expect_outstanding(0, 3, 5);
    cluster_settle(&w);
    expect_grants("abfcd");
}
END_TEST

START_TEST(votes_of_two_epochs_are_two_runs)
{
    ask_for("a");
    for (unsigned i = 0; i < 3; i++)
        w.engine.flights.guard.nodes[i].epoch++;
    ask_for("b");
    expect_outstanding(0, 2, 2);
    cluster_settle(&w);
    cluster_expect(&w, "#a NOQUORUM 1/3 need=2 a:unchecked b:unchecked");
    cluster_expect_grant(&w, "b");
}
END_TEST

/* Whichever node it is, the last one that is asked or another: what is behind the vote that its
 * link did not take is in no run with what is before. */
START_TEST(vote_that_a_node_was_not_asked_for_ends_its_run_there)
{
    const unsigned node = (unsigned)_i;
    ask_for("a");
    w.engine.flights.masters[node].link.load += LIMIT_LINK_VOTES;
    ask_for("b");
    w.engine.flights.masters[node].link.load -= LIMIT_LINK_VOTES;
    ask_for("c");
    for (unsigned i = 0; i < 3; i++)
        expect_outstanding(i, i == node ? 2 : 1, i == node ? 2 : 3);
    cluster_settle(&w);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_ptr_nonnull(strstr(cluster_heard(&w), " OK "));
    ck_assert_uint_eq(cluster_count(&w, "a"), 3);
    ck_assert_uint_eq(cluster_count(&w, "b"), 2);
    ck_assert_uint_eq(cluster_count(&w, "c"), 3);
}
END_TEST

START_TEST(refusal_in_a_run_is_that_of_its_lock)
{
    cluster_occupy(&w, "b", 5000);
    cluster_set(&w, 1, "c", "foreign", 5000);
    ask_for("abcd");
    cluster_settle(&w);
    expect_grants("adc");
    cluster_expect(&w, "#b HELD 5000");
    expect_outstanding(0, 0, 0);
}
END_TEST

START_TEST(answers_to_a_part_of_a_run_leave_the_rest_of_it)
{
    mute(true);
    ask_for("abcde");
    cluster_settle(&w);
    expect_outstanding(0, 4, 8); /* and three of the guard */
    ck_assert_uint_eq(say_ok(0, 2), 2);
    expect_outstanding(0, 4, 6);
    /* Those behind the run are not its own. */
    ck_assert_uint_eq(say_ok(0, 9), 3);
    expect_outstanding(0, 3, 3);
    ck_assert_uint_eq(w.engine.flights.vote_count[0], 2);
}
END_TEST

START_TEST(answers_that_come_at_once_are_votes_of_each)
{
    mute(true);
    ask_for("abcd");
    cluster_settle(&w);
    mute(false);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(say_ok(i, 4), 4);
    /* Nothing is granted before the guard has spoken, nor where it never does. */
    ck_assert_ptr_null(cluster_next_reply(&w));
    cluster_cut(&w, 0);
    cluster_cut(&w, 1);
    cluster_settle(&w);
    for (const char *tag = "abcd"; *tag != '\0'; tag++)
        cluster_expect(&w, "#%c NOQUORUM 1/3 need=2 a:disconnected b:disconnected", *tag);
}
END_TEST

START_TEST(run_that_is_lost_comes_back_vote_by_vote)
{
    mute(true);
    ask_for("abcd");
    cluster_settle(&w);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(say_ok(i, 1), 1);
    mute(false);
    for (unsigned i = 0; i < 3; i++)
        cluster_cut(&w, i);
    cluster_settle(&w);
    for (const char *tag = "abcd"; *tag != '\0'; tag++)
        cluster_expect(&w, "#%c NOQUORUM 1/3 need=2 a:disconnected b:disconnected", *tag);
    cluster_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    expect_outstanding(0, 0, 0);
}
END_TEST

/* While the samples of slow masters prove nothing. */
START_TEST(run_that_is_kept_too_long_comes_back_vote_by_vote)
{
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].delay_ns = 20 * NS_PER_MS;
    ask_for("abc");
    cluster_pass_ms(&w, 45);
    ck_assert_uint_eq(w.engine.flights.vote_count[0], 1);
    cluster_pass_ms(&w, 55);
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].delay_ns = 0;
    cluster_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.flights.vote_count[0], 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}
END_TEST

/* A ring goes round: whatever its slots held before. */
START_TEST(outstanding_command_has_nothing_of_the_one_before_in_its_slot)
{
    for (unsigned i = 0; i < 3; i++)
        memset(w.engine.flights.masters[i].link.outstanding, 0xff,
               LIMIT_LINK_COMMANDS * sizeof(struct outstanding));
    ask_for("ab");
    cluster_settle(&w);
    expect_grants("ab");
    expect_outstanding(0, 0, 0);
}
END_TEST

/* For those who look at them: commands, not runs; and each vote has had its round trip. */
START_TEST(each_vote_of_a_run_is_told_of)
{
    const struct link *link = &w.engine.flights.masters[0].link;
    uint64_t before = 0;
    uint64_t after = 0;
    mute(true);
    ask_for("abcd");
    ck_assert_uint_eq(link_unanswered(link), 4);
    cluster_settle(&w);
    ck_assert_uint_eq(link_unanswered(link), 4 + 3);
    uint64_t before_ns = link->round_trips.sum_ns;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        before += link->round_trips.counts[i];
    w.now_ns += NS_PER_MS;
    say_ok(0, 3);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        after += link->round_trips.counts[i];
    ck_assert_uint_eq(after, before + 3);
    ck_assert_uint_eq(link->round_trips.sum_ns, before_ns + 3 * NS_PER_MS);
    ck_assert_uint_eq(link_unanswered(link), 1 + 3);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("runs");
    TCase *tests = tcase_create("runs");
    tcase_add_checked_fixture(tests, three, end);
    tcase_add_test(tests, votes_of_one_pass_have_one_entry_and_count_each);
    tcase_add_test(tests, another_command_ends_a_run);
    tcase_add_test(tests, votes_of_two_epochs_are_two_runs);
    tcase_add_loop_test(tests, vote_that_a_node_was_not_asked_for_ends_its_run_there, 0, 3);
    tcase_add_test(tests, refusal_in_a_run_is_that_of_its_lock);
    tcase_add_test(tests, answers_to_a_part_of_a_run_leave_the_rest_of_it);
    tcase_add_test(tests, answers_that_come_at_once_are_votes_of_each);
    tcase_add_test(tests, run_that_is_lost_comes_back_vote_by_vote);
    tcase_add_test(tests, run_that_is_kept_too_long_comes_back_vote_by_vote);
    tcase_add_test(tests, outstanding_command_has_nothing_of_the_one_before_in_its_slot);
    tcase_add_test(tests, each_vote_of_a_run_is_told_of);
    suite_add_tcase(suite, tests);
    return suite;
}
