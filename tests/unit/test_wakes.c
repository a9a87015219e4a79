/*
 * What tells the daemon that a lock for which somebody waits is free: reports, expiry, looks. The
 * shipped engine among fake masters, on virtual time.
 */
#include <stdio.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/world.h"

static struct world w;

static void setup(void)
{
    world_init(&w, 5);
    world_pass_ms(&w, 10);
}

static void teardown(void)
{
    world_deinit(&w);
}

START_TEST(a_release_elsewhere_wakes_at_once_and_nothing_is_asked_before)
{
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 1000);
    unsigned before = world_commands(&w);
    world_pass_ms(&w, 40000);
    ck_assert_uint_eq(world_commands(&w), before);
    world_vacate(&w, "a");
    world_expect_grant(&w, "a");
    /* A look and a SET on each. */
    ck_assert_uint_eq(world_commands(&w) - before, 10);
}
END_TEST

/* The round that finds the lock held is for a client that does not wait. */
START_TEST(who_joins_during_a_round_is_woken_at_once_too)
{
    world_occupy(&w, "a", 60000);
    world_send(&w, "#n LOCK a 10s");
    world_send(&w, "#a LOCK a 10s WAIT 60s");
    world_settle(&w);
    world_expect(&w, "#n HELD 60000");
    world_vacate(&w, "a");
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(an_expiry_elsewhere_wakes_in_time)
{
    world_occupy(&w, "a", 20000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 19999);
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 2);
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(an_expiry_of_a_lock_granted_here_wakes_in_time)
{
    world_say(&w, "#a LOCK a 5s");
    world_expect_grant(&w, "a");
    world_pass_ms(&w, 1000);
    world_say(&w, "#b LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 3999);
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 3);
    world_expect_grant(&w, "b");
}
END_TEST

/* It was unlocked through another daemon. */
START_TEST(a_release_elsewhere_of_a_lock_granted_here_wakes_too)
{
    world_say(&w, "#a LOCK a 50s");
    world_expect_grant(&w, "a");
    world_say(&w, "#b LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 500);
    world_expect(&w, "(nothing)");
    world_vacate(&w, "a");
    world_expect_grant(&w, "b");
}
END_TEST

START_TEST(an_extension_elsewhere_is_seen)
{
    world_occupy(&w, "a", 2000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 1000);
    world_occupy(&w, "a", 30000);
    world_settle(&w);
    uint64_t asked = w.engine.stats.asked;
    world_pass_ms(&w, 29000);
    ck_assert_uint_eq(w.engine.stats.asked, asked);
    world_pass_ms(&w, 1002);
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(without_tracking_masters_are_looked_at_from_time_to_time)
{
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
        world_cut(&w, i);
    }
    world_pass_ms(&w, 1000);
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 10000);
    unsigned looks = w.masters[0].redis.runs[REDIS_SCRIPT_STATUS];
    ck_assert_uint_ge(looks, 20);
    ck_assert_uint_le(looks, 40);
    world_vacate(&w, "a");
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 500);
    world_expect_grant(&w, "a");
}
END_TEST

/* a and b have a key that nobody takes away, and e cannot report; so a quorum is free without that
 * a quorum of those who report is. */
START_TEST(where_one_reports_those_are_looked_at_that_cannot)
{
    w.masters[4].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
    world_cut(&w, 4);
    world_pass_ms(&w, 1000);
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 5000);
    for (unsigned i = 2; i < 5; i++)
        world_delete(&w, i, "a");
    world_settle(&w);
    world_expect_grant(&w, "a");
}
END_TEST

/* Of three masters, a keeps a leftover and c cannot report. Once b has reported that it is free,
 * the lock can become free by c alone. */
START_TEST(masters_that_cannot_report_are_looked_at_once_the_others_have_nothing_to_report)
{
    world_deinit(&w);
    world_init(&w, 3);
    w.masters[2].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
    world_cut(&w, 2);
    world_pass_ms(&w, 1000);
    world_occupy(&w, "a", 25000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 1000);
    world_delete(&w, 1, "a");
    world_pass_ms(&w, 1000);
    world_delete(&w, 2, "a");
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 500);
    world_expect_grant(&w, "a");
}
END_TEST

/* d and e have restarted: what they had is gone, and they have no vote for max_ttl. Somebody else
 * has it on a and b still. So the key is free on a quorum, but not on one that may vote. */
START_TEST(who_may_not_vote_is_not_among_those_that_have_it_free)
{
    for (unsigned i = 3; i < 5; i++)
        world_restart(&w, i);
    world_pass_ms(&w, 3000);
    ck_assert_str_eq(world_vote(&w, 4), "restarted");
    for (unsigned i = 0; i < 2; i++)
        world_set(&w, i, "a", "foreign", 40000);
    uint64_t asked = w.engine.stats.asked;
    world_say(&w, "#a LOCK a 10s WAIT 100s");
    world_pass_ms(&w, 10000);
    ck_assert_uint_le(w.engine.stats.asked - asked, 3);
    world_expect(&w, "(nothing)");
    world_delete(&w, 0, "a");
    world_settle(&w);
    ck_assert_uint_le(w.engine.stats.asked - asked, 4);
    world_delete(&w, 1, "a");
    world_settle(&w);
    world_expect_grant(&w, "a");
}
END_TEST

/* ... and when they may vote again, the key is free on a quorum of those that may. */
START_TEST(who_gets_its_vote_back_is_looked_at)
{
    for (unsigned i = 3; i < 5; i++)
        world_restart(&w, i);
    world_pass_ms(&w, 3000);
    for (unsigned i = 0; i < 2; i++)
        world_set(&w, i, "a", "foreign", 1000000);
    world_say(&w, "#a LOCK a 10s WAIT 100s");
    world_pass_ms(&w, 50000);
    ck_assert_str_eq(world_vote(&w, 4), "restarted");
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 20000);
    ck_assert_str_eq(world_vote(&w, 4), "-");
    world_expect_grant(&w, "a");
}
END_TEST

/* Two masters have it for somebody else, two are free, and the fifth would decide: so many rounds
 * within so long. */
static uint64_t rounds_in_vain(int64_t ms)
{
    for (unsigned i = 0; i < 2; i++)
        world_set(&w, i, "a", "foreign", 50000);
    uint64_t asked = w.engine.stats.asked;
    world_say(&w, "#a LOCK a 10s WAIT 100s");
    world_pass_ms(&w, ms);
    ck_assert_str_eq(world_vote(&w, 4), "-");
    world_expect(&w, "(nothing)");
    return w.engine.stats.asked - asked;
}

/* It takes a token away from where it has never been, but that it is free there is of no use. */
START_TEST(a_master_that_refuses_to_vote_is_not_asked_without_a_pause)
{
    w.masters[4].redis.refusals[FAKE_SETTING] = "OOM command not allowed";
    w.masters[4].delay_ns = NS_PER_MS;
    ck_assert_uint_le(rounds_in_vain(900), 15);
    w.masters[4].redis.refusals[FAKE_SETTING] = NULL;
    world_pass_ms(&w, 300);
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(a_master_whose_votes_do_not_count_is_not_asked_without_a_pause)
{
    /* So slow that no answer of it tells that its clock has not stepped. */
    w.masters[4].delay_ns = 15 * NS_PER_MS;
    ck_assert_uint_le(rounds_in_vain(900), 10);
    w.masters[4].delay_ns = 0;
    world_pass_ms(&w, 300);
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(what_was_missed_while_the_reports_were_cut_is_found)
{
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 1000);
    for (unsigned i = 0; i < 5; i++)
        world_cut_tracker(&w, i);
    world_vacate(&w, "a");
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 600);
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(what_was_missed_while_the_masters_were_away_is_found)
{
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 1000);
    for (unsigned i = 0; i < 5; i++) {
        world_cut(&w, i);
        world_cut_tracker(&w, i);
        world_delete(&w, i, "a");
    }
    world_pass_ms(&w, 600);
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(a_flush_is_noticed_and_looked_into)
{
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 300s");
    world_pass_ms(&w, 1000);
    uint64_t looks = w.engine.stats.key_probes;
    for (unsigned i = 0; i < 3; i++)
        world_flush(&w, i);
    world_settle(&w);
    ck_assert_uint_gt(w.engine.stats.key_probes, looks);
    world_pass_ms(&w, 50000);
    /* Two remember, three have forgotten and are in quarantine. */
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 30000);
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(a_look_that_fails_is_not_the_last)
{
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 1000);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = "LOADING the dataset";
    world_vacate(&w, "a");
    world_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = NULL;
    world_pass_ms(&w, 500);
    world_expect_grant(&w, "a");
}
END_TEST

/* The daemon was stopped: when it goes on, a connection has been lost, and a look is long due. It
 * must not be written to what is no more. */
/* a cannot report, so it is looked at once b has. */
START_TEST(a_look_that_is_lost_keeps_nothing_of_a_lock_for_which_nobody_waits)
{
    w.masters[0].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
    world_cut(&w, 0);
    world_pass_ms(&w, 1000);
    world_occupy(&w, "a", 60000);
    world_send_as(&w, &w.others[0], "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 1000);
    world_hang(&w, 1, true);
    world_delete(&w, 1, "a");
    world_settle(&w);
    ck_assert_uint_eq(w.engine.flights.masters[0].key_probes, 1);
    world_lose_client(&w, &w.others[0]);
    world_settle(&w);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 1);
    world_cut(&w, 0);
    world_settle(&w);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 0);
}
END_TEST

START_TEST(nothing_is_written_to_a_connection_that_closed_meanwhile)
{
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
        world_cut(&w, i);
    }
    world_pass_ms(&w, 1000);
    world_occupy(&w, "a", 30000);
    world_say(&w, "#w LOCK a 10s WAIT 60s");
    w.now_ns += 2 * NS_PER_S;
    world_cut(&w, 0);
    world_vacate(&w, "a");
    world_pass_ms(&w, 600);
    world_expect_grant(&w, "w");
}
END_TEST

/* The undo is sent again, in full; that one is not reported by the master any more. */
START_TEST(scripts_that_were_flushed_cost_no_report)
{
    world_occupy(&w, "a", 60000);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.deaf_to_scripts = true;
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 1000);
    world_vacate(&w, "a");
    world_pass_ms(&w, 500);
    world_expect_grant(&w, "a");
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
