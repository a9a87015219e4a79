/*
 * What tells the daemon that a lock for which somebody waits is free: reports, expiry, looks. The
 * shipped engine among fake masters, on virtual time.
 */
#include <stdio.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster.h"

static struct cluster w;

static void setup(void)
{
    cluster_init(&w, 5);
    cluster_pass_ms(&w, 10);
}

static void teardown(void)
{
    cluster_deinit(&w);
}

START_TEST(a_release_elsewhere_wakes_at_once_and_nothing_is_asked_before)
{
    cluster_occupy(&w, "a", 60000);
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    unsigned before = cluster_commands(&w);
    cluster_pass_ms(&w, 40000);
    ck_assert_uint_eq(cluster_commands(&w), before);
    cluster_vacate(&w, "a");
    cluster_expect_grant(&w, "a");
    /* A look and a SET on each. */
    ck_assert_uint_eq(cluster_commands(&w) - before, 10);
}
END_TEST

/* The round that finds the lock held is for a client that does not wait. */
START_TEST(who_joins_during_a_round_is_woken_at_once_too)
{
    cluster_occupy(&w, "a", 60000);
    cluster_send(&w, "#n LOCK a 10s");
    cluster_send(&w, "#a LOCK a 10s WAIT 60s");
    cluster_settle(&w);
    cluster_expect(&w, "#n HELD 60000");
    cluster_vacate(&w, "a");
    cluster_expect_grant(&w, "a");
}
END_TEST

START_TEST(an_expiry_elsewhere_wakes_in_time)
{
    cluster_occupy(&w, "a", 20000);
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 19999);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 2);
    cluster_expect_grant(&w, "a");
}
END_TEST

START_TEST(an_expiry_of_a_lock_granted_here_wakes_in_time)
{
    cluster_say(&w, "#a LOCK a 5s");
    cluster_expect_grant(&w, "a");
    cluster_pass_ms(&w, 1000);
    cluster_say(&w, "#b LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 3999);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 3);
    cluster_expect_grant(&w, "b");
}
END_TEST

/* It was unlocked through another daemon. */
START_TEST(a_release_elsewhere_of_a_lock_granted_here_wakes_too)
{
    cluster_say(&w, "#a LOCK a 50s");
    cluster_expect_grant(&w, "a");
    cluster_say(&w, "#b LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 500);
    cluster_expect(&w, "(nothing)");
    cluster_vacate(&w, "a");
    cluster_expect_grant(&w, "b");
}
END_TEST

START_TEST(an_extension_elsewhere_is_seen)
{
    cluster_occupy(&w, "a", 2000);
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 30000);
    cluster_settle(&w);
    uint64_t asked = w.engine.stats.asked;
    cluster_pass_ms(&w, 29000);
    ck_assert_uint_eq(w.engine.stats.asked, asked);
    cluster_pass_ms(&w, 1002);
    cluster_expect_grant(&w, "a");
}
END_TEST

START_TEST(without_tracking_masters_are_looked_at_from_time_to_time)
{
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
        cluster_cut(&w, i);
    }
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 60000);
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 10000);
    unsigned looks = w.masters[0].redis.runs[REDIS_SCRIPT_STATUS];
    ck_assert_uint_ge(looks, 20);
    ck_assert_uint_le(looks, 40);
    cluster_vacate(&w, "a");
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 500);
    cluster_expect_grant(&w, "a");
}
END_TEST

/* a and b have a key that nobody takes away, and e cannot report; so a quorum is free without that
 * a quorum of those who report is. */
START_TEST(where_one_reports_those_are_looked_at_that_cannot)
{
    w.masters[4].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
    cluster_cut(&w, 4);
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 60000);
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 5000);
    for (unsigned i = 2; i < 5; i++)
        cluster_delete(&w, i, "a");
    cluster_settle(&w);
    cluster_expect_grant(&w, "a");
}
END_TEST

/* Of three masters, a keeps a leftover and c cannot report. Once b has reported that it is free,
 * the lock can become free by c alone. */
START_TEST(masters_that_cannot_report_are_looked_at_once_the_others_have_nothing_to_report)
{
    cluster_deinit(&w);
    cluster_init(&w, 3);
    w.masters[2].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
    cluster_cut(&w, 2);
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 25000);
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    cluster_delete(&w, 1, "a");
    cluster_pass_ms(&w, 1000);
    cluster_delete(&w, 2, "a");
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 500);
    cluster_expect_grant(&w, "a");
}
END_TEST

/* d and e have restarted: what they had is gone, and they have no vote for max_ttl. Somebody else
 * has it on a and b still. So the key is free on a quorum, but not on one that may vote. */
START_TEST(who_may_not_vote_is_not_among_those_that_have_it_free)
{
    for (unsigned i = 3; i < 5; i++)
        cluster_restart(&w, i);
    cluster_pass_ms(&w, 3000);
    ck_assert_str_eq(cluster_vote(&w, 4), "restarted");
    for (unsigned i = 0; i < 2; i++)
        cluster_set(&w, i, "a", "foreign", 40000);
    uint64_t asked = w.engine.stats.asked;
    cluster_say(&w, "#a LOCK a 10s WAIT 100s");
    cluster_pass_ms(&w, 10000);
    ck_assert_uint_le(w.engine.stats.asked - asked, 3);
    cluster_expect(&w, "(nothing)");
    cluster_delete(&w, 0, "a");
    cluster_settle(&w);
    ck_assert_uint_le(w.engine.stats.asked - asked, 4);
    cluster_delete(&w, 1, "a");
    cluster_settle(&w);
    cluster_expect_grant(&w, "a");
}
END_TEST

/* ... and when they may vote again, the key is free on a quorum of those that may. */
START_TEST(who_gets_its_vote_back_is_looked_at)
{
    for (unsigned i = 3; i < 5; i++)
        cluster_restart(&w, i);
    cluster_pass_ms(&w, 3000);
    for (unsigned i = 0; i < 2; i++)
        cluster_set(&w, i, "a", "foreign", 1000000);
    cluster_say(&w, "#a LOCK a 10s WAIT 100s");
    cluster_pass_ms(&w, 50000);
    ck_assert_str_eq(cluster_vote(&w, 4), "restarted");
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 20000);
    ck_assert_str_eq(cluster_vote(&w, 4), "-");
    cluster_expect_grant(&w, "a");
}
END_TEST

/* Two masters have it for somebody else, two are free, and the fifth would decide: so many rounds
 * within so long. */
static uint64_t rounds_in_vain(int64_t ms)
{
    for (unsigned i = 0; i < 2; i++)
        cluster_set(&w, i, "a", "foreign", 50000);
    uint64_t asked = w.engine.stats.asked;
    cluster_say(&w, "#a LOCK a 10s WAIT 100s");
    cluster_pass_ms(&w, ms);
    ck_assert_str_eq(cluster_vote(&w, 4), "-");
    cluster_expect(&w, "(nothing)");
    return w.engine.stats.asked - asked;
}

/* It takes a token away from where it has never been, but that it is free there is of no use. */
START_TEST(a_master_that_refuses_to_vote_is_not_asked_without_a_pause)
{
    w.masters[4].redis.refusals[FAKE_SETTING] = "OOM command not allowed";
    w.masters[4].delay_ns = NS_PER_MS;
    ck_assert_uint_le(rounds_in_vain(900), 15);
    w.masters[4].redis.refusals[FAKE_SETTING] = NULL;
    cluster_pass_ms(&w, 300);
    cluster_expect_grant(&w, "a");
}
END_TEST

START_TEST(a_master_whose_votes_do_not_count_is_not_asked_without_a_pause)
{
    /* So slow that no answer of it tells that its clock has not stepped. */
    w.masters[4].delay_ns = 15 * NS_PER_MS;
    ck_assert_uint_le(rounds_in_vain(900), 10);
    w.masters[4].delay_ns = 0;
    cluster_pass_ms(&w, 300);
    cluster_expect_grant(&w, "a");
}
END_TEST

START_TEST(what_was_missed_while_the_reports_were_cut_is_found)
{
    cluster_occupy(&w, "a", 60000);
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    for (unsigned i = 0; i < 5; i++)
        cluster_cut_tracker(&w, i);
    cluster_vacate(&w, "a");
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 600);
    cluster_expect_grant(&w, "a");
}
END_TEST

START_TEST(what_was_missed_while_the_masters_were_away_is_found)
{
    cluster_occupy(&w, "a", 60000);
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    for (unsigned i = 0; i < 5; i++) {
        cluster_cut(&w, i);
        cluster_cut_tracker(&w, i);
        cluster_delete(&w, i, "a");
    }
    cluster_pass_ms(&w, 600);
    cluster_expect_grant(&w, "a");
}
END_TEST

START_TEST(a_flush_is_noticed_and_looked_into)
{
    cluster_occupy(&w, "a", 60000);
    cluster_say(&w, "#a LOCK a 10s WAIT 300s");
    cluster_pass_ms(&w, 1000);
    uint64_t looks = w.engine.stats.key_probes;
    for (unsigned i = 0; i < 3; i++)
        cluster_flush(&w, i);
    cluster_settle(&w);
    ck_assert_uint_gt(w.engine.stats.key_probes, looks);
    cluster_pass_ms(&w, 50000);
    /* Two remember, three have forgotten and are in quarantine. */
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 30000);
    cluster_expect_grant(&w, "a");
}
END_TEST

START_TEST(a_look_that_fails_is_not_the_last)
{
    cluster_occupy(&w, "a", 60000);
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = "LOADING the dataset";
    cluster_vacate(&w, "a");
    cluster_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = NULL;
    cluster_pass_ms(&w, 500);
    cluster_expect_grant(&w, "a");
}
END_TEST

/* The daemon was stopped: when it goes on, a connection has been lost, and a look is long due. It
 * must not be written to what is no more. */
/* a cannot report, so it is looked at once b has. */
START_TEST(a_look_that_is_lost_keeps_nothing_of_a_lock_for_which_nobody_waits)
{
    w.masters[0].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
    cluster_cut(&w, 0);
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 60000);
    cluster_send_as(&w, &w.others[0], "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    cluster_hang(&w, 1, true);
    cluster_delete(&w, 1, "a");
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.flights.masters[0].key_probes, 1);
    cluster_lose_client(&w, &w.others[0]);
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 1);
    cluster_cut(&w, 0);
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 0);
}
END_TEST

START_TEST(nothing_is_written_to_a_connection_that_closed_meanwhile)
{
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
        cluster_cut(&w, i);
    }
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 30000);
    cluster_say(&w, "#w LOCK a 10s WAIT 60s");
    w.now_ns += 2 * NS_PER_S;
    cluster_cut(&w, 0);
    cluster_vacate(&w, "a");
    cluster_pass_ms(&w, 600);
    cluster_expect_grant(&w, "w");
}
END_TEST

/* The undo is sent again, in full; that one is not reported by the master any more. */
START_TEST(scripts_that_were_flushed_cost_no_report)
{
    cluster_occupy(&w, "a", 60000);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.deaf_to_scripts = true;
    cluster_say(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    cluster_vacate(&w, "a");
    cluster_pass_ms(&w, 500);
    cluster_expect_grant(&w, "a");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("wakes");
    TCase *cases = tcase_create("wakes");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_release_elsewhere_wakes_at_once_and_nothing_is_asked_before);
    tcase_add_test(cases, who_joins_during_a_round_is_woken_at_once_too);
    tcase_add_test(cases, an_expiry_elsewhere_wakes_in_time);
    tcase_add_test(cases, an_expiry_of_a_lock_granted_here_wakes_in_time);
    tcase_add_test(cases, a_release_elsewhere_of_a_lock_granted_here_wakes_too);
    tcase_add_test(cases, an_extension_elsewhere_is_seen);
    tcase_add_test(cases, without_tracking_masters_are_looked_at_from_time_to_time);
    tcase_add_test(cases, where_one_reports_those_are_looked_at_that_cannot);
    tcase_add_test(cases,
                   masters_that_cannot_report_are_looked_at_once_the_others_have_nothing_to_report);
    tcase_add_test(cases, who_may_not_vote_is_not_among_those_that_have_it_free);
    tcase_add_test(cases, who_gets_its_vote_back_is_looked_at);
    tcase_add_test(cases, a_master_that_refuses_to_vote_is_not_asked_without_a_pause);
    tcase_add_test(cases, a_master_whose_votes_do_not_count_is_not_asked_without_a_pause);
    tcase_add_test(cases, what_was_missed_while_the_reports_were_cut_is_found);
    tcase_add_test(cases, what_was_missed_while_the_masters_were_away_is_found);
    tcase_add_test(cases, a_flush_is_noticed_and_looked_into);
    tcase_add_test(cases, a_look_that_fails_is_not_the_last);
    tcase_add_test(cases, a_look_that_is_lost_keeps_nothing_of_a_lock_for_which_nobody_waits);
    tcase_add_test(cases, nothing_is_written_to_a_connection_that_closed_meanwhile);
    tcase_add_test(cases, scripts_that_were_flushed_cost_no_report);
    suite_add_tcase(suite, cases);
    return suite;
}
