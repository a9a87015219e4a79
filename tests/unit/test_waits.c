/*
 * LOCK ... WAIT: the shipped engine among fake masters, on virtual time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/runner.h"
#include "tests/unit/world.h"

static struct world w;
static struct world v; /* another daemon on the same masters */

static void setup(void)
{
    world_init(&w, 5);
    world_pass_ms(&w, 10);
}

static void teardown(void)
{
    world_deinit(&w);
}

static unsigned place_of(const char *line, const struct engine_client *client)
{
    const struct request_limits limits = {.key_prefix = ""};
    struct request request;
    struct error error;
    ck_assert_int_eq(request_parse(line, strlen(line), &limits, &request, &error), REQUEST_FINE);
    const struct resource *resource = engine_find(&w.engine, &request);
    return resource != NULL ? engine_place(resource, client) : 0;
}

/* --- order --- */

START_TEST(each_has_its_place_in_line)
{
    world_occupy(&w, "a", 5000);
    world_occupy(&w, "b", 5000);
    ck_assert_uint_eq(place_of("LOCKS a", &w.client), 0);
    world_send_as(&w, &w.others[0], "#1 LOCK a 1s WAIT 60s");
    world_send_as(&w, &w.others[1], "#2 LOCK a 1s WAIT 2s");
    world_send_as(&w, &w.client, "#3 LOCK a 1s WAIT 60s");
    world_send_as(&w, &w.others[1], "#4 LOCK a 1s WAIT 60s");
    world_send_as(&w, &w.client, "#5 LOCK a 1s WAIT 60s");
    world_send_as(&w, &w.others[2], "#6 LOCK b 1s WAIT 60s");
    world_settle(&w);
    unsigned before = world_commands(&w);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[0]), 1);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[1]), 2);
    ck_assert_uint_eq(place_of("LOCKS a", &w.client), 3);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[2]), 0);
    ck_assert_uint_eq(place_of("LOCKS b", &w.others[2]), 1);
    ck_assert_uint_eq(place_of("LOCKS b", &w.client), 0);
    ck_assert_uint_eq(place_of("LOCKS c", &w.client), 0);
    world_settle(&w);
    ck_assert_uint_eq(world_commands(&w), before);
    /* The wait of the second in line is over: it has another place behind. */
    world_pass_ms(&w, 2000);
    ck_assert_uint_eq(place_of("LOCKS a", &w.client), 2);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[1]), 3);
    world_vacate(&w, "a");
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[0]), 0);
    ck_assert_uint_eq(place_of("LOCKS a", &w.client), 1);
    world_lose_client(&w, &w.client);
    ck_assert_uint_eq(place_of("LOCKS a", &w.others[1]), 1);
}
END_TEST

START_TEST(waiters_are_served_in_the_order_they_came)
{
    enum { WAITERS = 20 };
    char tag[8];
    char token[LIMIT_TOKEN + 1];
    world_say(&w, "#t0 LOCK a 10s");
    memcpy(token, world_expect_grant(&w, "t0"), sizeof(token));
    for (unsigned i = 1; i <= WAITERS; i++) {
        world_say(&w, "#t%u LOCK a 10s WAIT 60s", i);
        world_pass_ms(&w, 1);
    }
    world_expect(&w, "(nothing)");
    unsigned before = world_commands(&w);
    for (unsigned i = 1; i <= WAITERS; i++) {
        world_say(&w, "#u UNLOCK a %s", token);
        snprintf(tag, sizeof(tag), "t%u", i);
        world_expect(&w, "#u OK");
        memcpy(token, world_expect_grant(&w, tag), sizeof(token));
        ck_assert_uint_eq(world_count(&w, "a"), 5);
    }
    world_expect(&w, "(nothing)");
    /* One command on each master for each of them. */
    ck_assert_uint_eq(world_commands(&w) - before, 5 * WAITERS);
    ck_assert_uint_eq(w.engine.stats.handovers, WAITERS);
    world_say(&w, "#u UNLOCK a %s", token);
    ck_assert_uint_eq(world_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.resources.pool.in_use, 1);
    ck_assert_uint_eq(w.engine.calls.in_use, 0);
    ck_assert_uint_eq(w.engine.locks.in_use, 0);
    ck_assert_uint_eq(w.engine.waiting, 0);
}
END_TEST

START_TEST(the_validity_counts_from_the_round_and_the_elapsed_time_from_the_arrival)
{
    int64_t validity_ms;
    int64_t elapsed_ms;
    world_say(&w, "#a LOCK a 10s");
    char token[LIMIT_TOKEN + 1];
    memcpy(token, world_expect_grant(&w, "a"), sizeof(token));
    world_say(&w, "#b LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 4000);
    world_say(&w, "#u UNLOCK a %s", token);
    world_expect(&w, "#u OK");
    ck_assert_int_eq(
        sscanf(world_heard(&w), "#b OK %*s %" SCNd64 " %" SCNd64, &validity_ms, &elapsed_ms), 2);
    ck_assert_int_eq(validity_ms, 10000 - 110);
    ck_assert_int_eq(elapsed_ms, 4000 - 40);
}
END_TEST

START_TEST(one_round_at_a_time_asks_for_a_resource)
{
    w.masters[0].hung = w.masters[1].hung = w.masters[2].hung = true;
    world_send(&w, "#a LOCK a 10s");
    world_send(&w, "#b LOCK a 10s");
    world_send(&w, "#c LOCK a 10s WAIT 1s");
    world_settle(&w);
    ck_assert_uint_eq(w.engine.stats.asked, 1);
    world_hang(&w, 3, false);
    world_settle(&w);
    world_expect_grant(&w, "a");
    world_expect(&w, "#b HELD 10000");
    world_expect(&w, "(nothing)");
    ck_assert_uint_eq(w.engine.stats.asked, 1);
}
END_TEST

START_TEST(who_does_not_wait_does_not_pass_those_who_do)
{
    world_occupy(&w, "a", 5000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_say(&w, "#b LOCK a 10s");
    world_expect(&w, "#b HELD 5000");
    unsigned asked = (unsigned)w.engine.stats.asked;
    ck_assert_uint_eq(asked, 1);
    world_vacate(&w, "a");
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(a_wait_of_zero_is_no_wait)
{
    world_occupy(&w, "a", 5000);
    world_say(&w, "#a LOCK a 10s WAIT 0");
    world_expect(&w, "#a HELD 5000");
    ck_assert_uint_eq(w.engine.waiting, 0);
}
END_TEST

/* --- the end of the wait --- */

START_TEST(the_wait_ends_when_it_said)
{
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 2s");
    world_pass_ms(&w, 1999);
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 1);
    world_expect(&w, "#a HELD 58000");
    ck_assert_uint_eq(w.engine.calls.in_use, 0);
    ck_assert_uint_eq(w.engine.resources.pool.in_use, 1);
    world_vacate(&w, "a");
    world_pass_ms(&w, 5000);
    world_expect(&w, "(nothing)");
    ck_assert_uint_eq(world_count(&w, "a"), 0);
}
END_TEST

/* Its round may still be granted. */
START_TEST(a_wait_that_ends_within_a_round_ends_with_it)
{
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 2s");
    world_say(&w, "#b LOCK a 10s WAIT 2s");
    world_pass_ms(&w, 1988);
    /* Looked at by 1996, asked by 2004. */
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 8 * NS_PER_MS;
    world_vacate(&w, "a");
    world_pass_ms(&w, 15);
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 1);
    world_expect_grant(&w, "a");
    world_expect(&w, "#b HELD 10000");
}
END_TEST

START_TEST(a_wait_outlives_a_lack_of_masters)
{
    world_kill(&w, 0);
    world_kill(&w, 1);
    world_kill(&w, 2);
    world_say(&w, "#a LOCK a 10s WAIT 300s");
    world_say(&w, "#b LOCK a 10s WAIT 1s");
    world_pass_ms(&w, 1000);
    world_expect(&w, "#b NOQUORUM 2/5 need=3 a:refused b:refused c:refused");
    world_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 3; i++)
        world_restart(&w, i);
    /* Their quarantine. */
    world_pass_ms(&w, 60000);
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 15000);
    world_expect_grant(&w, "a");
}
END_TEST

START_TEST(who_does_not_wait_hears_why_the_others_do)
{
    for (unsigned i = 0; i < 3; i++)
        world_kill(&w, i);
    world_say(&w, "#a LOCK a 10s WAIT 300s");
    world_say(&w, "#b LOCK a 10s");
    world_expect(&w, "#b NOQUORUM 2/5 need=3 a:disconnected b:disconnected c:disconnected");
}
END_TEST

START_TEST(a_lack_of_masters_that_is_over_is_not_told)
{
    world_hang(&w, 3, true);
    world_say(&w, "#a LOCK a 60s WAIT 60s");
    world_pass_ms(&w, 60);
    world_hang(&w, 3, false);
    world_pass_ms(&w, 2000);
    world_expect_grant(&w, "a");
    world_say(&w, "#b LOCK a 60s WAIT 10ms");
    world_pass_ms(&w, 10);
    ck_assert_int_eq(strncmp(world_heard(&w), "#b HELD ", 8), 0);
}
END_TEST

START_TEST(a_wait_outlives_answers_that_are_late)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 30 * NS_PER_MS;
    world_send(&w, "#a LOCK a 40ms WAIT 10s");
    world_pass_ms(&w, 200);
    world_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 0;
    world_pass_ms(&w, 1000);
    world_expect_grant(&w, "a");
}
END_TEST

/* For a shorter time to live than tests have else: the shortest by the shipped defaults. */
static void send_briefest(struct engine_client *client, const char *line)
{
    const struct request_limits shipped = {.ttl_min_ms = 13, .ttl_max_ms = 60000, .key_prefix = ""};
    struct request request;
    struct error error;
    ck_assert_int_eq(request_parse(line, strlen(line), &shipped, &request, &error), REQUEST_FINE);
    engine_submit(&w.engine, client, &request, w.now_ns);
}

/* A round takes 4 ms, and 10 go for the drift: nothing can be left of 13. */
START_TEST(too_short_a_time_to_live_keeps_nobody_waiting)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 4 * NS_PER_MS;
    world_pass_ms(&w, 5000);
    send_briefest(&w.client, "#a LOCK a 13ms WAIT 1h");
    send_briefest(&w.others[0], "#b LOCK a 13ms WAIT 1ms");
    world_send_as(&w, &w.others[1], "#c LOCK a 10s WAIT 1m");
    world_pass_ms(&w, 200);
    world_expect(&w, "#a LATE 3");
    world_expect(&w, "#b HELD -1");
    world_expect_grant(&w, "c");
    world_expect(&w, "(nothing)");
}
END_TEST

/* --- when it becomes free --- */

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
        w.masters[i].untracked = true;
        world_cut(&w, i);
    }
    world_pass_ms(&w, 1000);
    world_occupy(&w, "a", 60000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 10000);
    unsigned looks = w.masters[0].status_runs;
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
    w.masters[4].untracked = true;
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

/* d and e have restarted: what they had is gone, and they have no vote for max_ttl. Somebody else
 * has it on a and b still. So the key is free on a quorum, but not on one that may vote. */
START_TEST(who_may_not_vote_is_not_among_those_that_have_it_free)
{
    for (unsigned i = 3; i < 5; i++) {
        world_kill(&w, i);
        world_restart(&w, i);
    }
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
    for (unsigned i = 3; i < 5; i++) {
        world_kill(&w, i);
        world_restart(&w, i);
    }
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
    for (unsigned i = 0; i < 3; i++)
        world_flush(&w, i);
    world_settle(&w);
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
        snprintf(w.masters[i].error, sizeof(w.masters[i].error), "LOADING the dataset");
    world_vacate(&w, "a");
    world_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].error[0] = '\0';
    world_pass_ms(&w, 500);
    world_expect_grant(&w, "a");
}
END_TEST

/* The daemon was stopped: when it goes on, a connection has been lost, and a look is long due. It
 * must not be written to what is no more. */
START_TEST(nothing_is_written_to_a_connection_that_closed_meanwhile)
{
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].untracked = true;
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
        w.masters[i].scripts_flushed = true;
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_pass_ms(&w, 1000);
    world_vacate(&w, "a");
    world_pass_ms(&w, 500);
    world_expect_grant(&w, "a");
}
END_TEST

/* --- hand-overs that go wrong --- */

static char holder[LIMIT_TOKEN + 1];

/* One holds, one waits. */
static void hold_and_wait(const char *holds, const char *waits)
{
    world_say(&w, "%s", holds);
    memcpy(holder, world_expect_grant(&w, "h"), sizeof(holder));
    world_say(&w, "%s", waits);
    world_expect(&w, "(nothing)");
}

/* Nobody has it on any master, but for this one. */
static void expect_values(const char *value)
{
    for (unsigned i = 0; i < 5; i++) {
        const char *there = world_value(&w, i, "a");
        ck_assert_msg(there == NULL || (value != NULL && strcmp(there, value) == 0),
                      "master %u has %s", i, there);
    }
}

START_TEST(a_hand_over_that_finds_no_quorum_leaves_neither_token)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s");
    world_hang(&w, 3, true);
    world_say(&w, "#u UNLOCK a %s", holder);
    world_pass_ms(&w, 60);
    world_expect(&w, "#u NOQUORUM 2/5 need=3 a:timeout b:timeout c:timeout");
    world_expect(&w, "(nothing)");
    world_hang(&w, 3, false);
    world_settle(&w);
    expect_values(NULL);
    /* It has kept its place. */
    world_pass_ms(&w, 2000);
    world_expect_grant(&w, "b");
}
END_TEST

/* It is written before the hand-over, and behind it the links take no more votes. */
START_TEST(a_hand_over_may_find_a_release_gathered_before_it)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s");
    for (unsigned i = 0; w.engine.links[0].load < LIMIT_LINK_VOTES - 1; i++)
        world_send_as(&w, &w.others[i / 1000], "#s%u STATUS x", i);
    /* Who asked wants no answers. */
    for (unsigned i = 0; i < 3; i++)
        w.others[i].gone = true;
    world_send_as(&w, &w.others[3], "#o UNLOCK a aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    world_send_as(&w, &w.others[3], "#u UNLOCK a %s", holder);
    world_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.waiting, 0);
    ck_assert_uint_eq(world_count(&w, "a"), 5);
}
END_TEST

START_TEST(a_hand_over_whose_connections_are_lost_leaves_neither_token)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s");
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].mute = true;
    world_say(&w, "#u UNLOCK a %s", holder);
    for (unsigned i = 0; i < 3; i++) {
        world_cut(&w, i);
        w.masters[i].mute = false;
    }
    world_settle(&w);
    world_expect(&w, "#u NOQUORUM 2/5 need=3 a:disconnected b:disconnected c:disconnected");
    world_pass_ms(&w, 5000);
    const char *token = world_expect_grant(&w, "b");
    expect_values(token);
}
END_TEST

/* What the masters had not read yet is killed with its connection, and the old token is still
 * there. */
START_TEST(a_hand_over_that_was_never_read_is_made_up_for)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s");
    world_hang(&w, 3, true);
    world_say(&w, "#u UNLOCK a %s", holder);
    world_pass_ms(&w, 60);
    world_expect(&w, "#u NOQUORUM 2/5 need=3 a:timeout b:timeout c:timeout");
    for (unsigned i = 0; i < 3; i++) {
        world_cut(&w, i);
        w.masters[i].hung = false;
        ck_assert_str_eq(world_value(&w, i, "a"), holder);
    }
    w.zombies_wait = true;
    world_pass_ms(&w, 300);
    w.zombies_wait = false;
    world_pass_ms(&w, 3000);
    const char *token = world_expect_grant(&w, "b");
    expect_values(token);
}
END_TEST

/* Three have voted for the next, and lost it all before the guard looked: no grant. */
START_TEST(a_hand_over_is_guarded)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 500s");
    w.lazy = true;
    world_send(&w, "#u UNLOCK a %s", holder);
    for (unsigned i = 0; i < 3; i++)
        world_flush(&w, i);
    world_settle(&w);
    w.lazy = false;
    /* Three did not have the old one any more. */
    world_expect(&w, "#u GONE");
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 50000);
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 30000);
    world_expect_grant(&w, "b");
}
END_TEST

START_TEST(a_hand_over_takes_nothing_from_a_stranger)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s");
    for (unsigned i = 0; i < 3; i++) {
        world_delete(&w, i, "a");
        world_set(&w, i, "a", "foreign", 20000);
    }
    world_say(&w, "#u UNLOCK a %s", holder);
    world_expect(&w, "#u GONE");
    world_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 3; i++)
        ck_assert_str_eq(world_value(&w, i, "a"), "foreign");
    for (unsigned i = 3; i < 5; i++)
        ck_assert_ptr_null(world_value(&w, i, "a"));
    world_pass_ms(&w, 20002);
    world_expect_grant(&w, "b");
}
END_TEST

START_TEST(a_hand_over_takes_what_has_expired_for_free)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s");
    for (unsigned i = 0; i < 2; i++)
        world_delete(&w, i, "a");
    world_say(&w, "#u UNLOCK a %s", holder);
    world_expect(&w, "#u OK");
    world_expect_grant(&w, "b");
    ck_assert_uint_eq(world_count(&w, "a"), 5);
}
END_TEST

START_TEST(a_hand_over_whose_scripts_were_flushed_is_sent_in_full)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].scripts_flushed = true;
    world_say(&w, "#u UNLOCK a %s", holder);
    world_expect(&w, "#u OK");
    world_expect_grant(&w, "b");
}
END_TEST

START_TEST(a_hand_over_to_one_who_leaves_goes_on_to_the_next)
{
    hold_and_wait("#h LOCK a 50s", "#c LOCK a 50s WAIT 100s");
    world_send_as(&w, &w.others[0], "#x LOCK a 50s WAIT 100s");
    world_say(&w, "#d LOCK a 50s WAIT 100s");
    world_say(&w, "#u UNLOCK a %s", holder);
    world_expect(&w, "#u OK");
    memcpy(holder, world_expect_grant(&w, "c"), sizeof(holder));
    world_hang(&w, 3, true);
    world_say(&w, "#u UNLOCK a %s", holder);
    world_end_client(&w, &w.others[0]);
    ck_assert_str_eq(world_heard(&w), "undone x");
    world_hang(&w, 3, false);
    world_settle(&w);
    world_expect(&w, "#u OK");
    expect_values(world_expect_grant(&w, "d"));
}
END_TEST

START_TEST(a_token_that_this_daemon_did_not_grant_is_only_released)
{
    world_occupy(&w, "a", 50000);
    world_say(&w, "#b LOCK a 50s WAIT 100s");
    uint64_t asked = w.engine.stats.asked;
    world_say(&w, "#u UNLOCK a %s", "0123456789012345678901234567890123456789");
    world_expect(&w, "#u GONE");
    ck_assert_uint_eq(w.engine.stats.asked, asked);
    world_expect(&w, "(nothing)");
}
END_TEST

START_TEST(an_unlock_of_an_old_token_takes_nothing_from_the_next)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s");
    char first[LIMIT_TOKEN + 1];
    memcpy(first, holder, sizeof(first));
    world_say(&w, "#u UNLOCK a %s", first);
    world_expect(&w, "#u OK");
    memcpy(holder, world_expect_grant(&w, "b"), sizeof(holder));
    world_say(&w, "#c LOCK a 50s WAIT 100s");
    world_say(&w, "#u UNLOCK a %s", first);
    world_expect(&w, "#u GONE");
    world_expect(&w, "(nothing)");
    expect_values(holder);
    ck_assert_uint_eq(world_count(&w, "a"), 5);
}
END_TEST

START_TEST(an_extension_under_way_does_not_bring_a_released_token_back)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s");
    world_delete(&w, 4, "a");
    w.masters[4].hung = true;
    world_say(&w, "#e EXTEND a %s 50s", holder);
    ck_assert_str_eq(world_heard(&w) + 3, strstr(w.replies[w.replies_read - 1], "OK"));
    world_say(&w, "#u UNLOCK a %s", holder);
    world_expect(&w, "#u OK");
    const char *token = world_expect_grant(&w, "b");
    w.masters[4].hung = false;
    world_settle(&w);
    expect_values(token);
}
END_TEST

/* --- fences --- */

static int64_t fence_of(const char *tag)
{
    char start[40];
    int64_t fence = -1;
    const char *reply = world_heard(&w);
    snprintf(start, sizeof(start), "#%s OK ", tag);
    ck_assert_msg(strncmp(reply, start, strlen(start)) == 0, "%s", reply);
    ck_assert_int_eq(sscanf(reply + strlen(start), "%*s %*s %*s %" SCNd64, &fence), 1);
    return fence;
}

START_TEST(fences_rise_from_hand_over_to_hand_over)
{
    world_say(&w, "#h LOCK a 50s FENCE");
    const char *reply = w.replies[0];
    int64_t last = fence_of("h");
    for (unsigned i = 0; i < 5; i++) {
        snprintf(holder, sizeof(holder), "%.40s", reply + 6);
        world_say(&w, "#h LOCK a 50s WAIT 10s FENCE");
        unsigned before = w.reply_count;
        world_say(&w, "#u UNLOCK a %s", holder);
        world_expect(&w, "#u OK");
        reply = w.replies[before + 1];
        int64_t fence = fence_of("h");
        ck_assert_int_gt(fence, last);
        last = fence;
    }
    ck_assert_uint_eq(w.engine.stats.handovers, 5);
}
END_TEST

START_TEST(a_hand_over_below_a_fence_bids_again_above_it)
{
    hold_and_wait("#h LOCK a 50s", "#b LOCK a 50s WAIT 100s FENCE");
    for (unsigned i = 0; i < 5; i++)
        world_set(&w, i, "redlockd:fence:a", "2000000000000000", 0);
    world_say(&w, "#u UNLOCK a %s", holder);
    world_expect(&w, "#u OK");
    ck_assert_int_eq(fence_of("b"), 2000000000000001);
}
END_TEST

/* --- turns --- */

/* Both in turns, for so long. */
static void pass_both(int64_t ms)
{
    for (int64_t i = 0; i < ms; i++) {
        world_pass_ms(&w, 1);
        world_share(&v, &w);
        v.now_ns -= NS_PER_MS;
        world_pass_ms(&v, 1);
        world_share(&w, &v);
    }
}

static void with_second_daemon(void)
{
    world_join(&v, &w, "elsewhere");
    w.now_ns = v.now_ns;
    pass_both(3000);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(world_vote(&v, i), "-");
}

START_TEST(a_daemon_gives_others_their_turn)
{
    const char *theirs;
    char token[LIMIT_TOKEN + 1];
    unsigned ours = 0;
    with_second_daemon();
    world_say(&w, "#a LOCK a 50s");
    memcpy(token, world_expect_grant(&w, "a"), sizeof(token));
    world_share(&v, &w);
    world_send(&v, "#v LOCK a 50s WAIT 100s");
    world_settle(&v);
    world_share(&w, &v);
    /* There is always one more here. */
    for (; ours < 100; ours++) {
        world_say(&w, "#a LOCK a 50s WAIT 100s");
        world_say(&w, "#u UNLOCK a %s", token);
        world_expect(&w, "#u OK");
        pass_both(1);
        const char *reply = world_next_reply(&w);
        if (reply == NULL)
            break;
        snprintf(token, sizeof(token), "%.40s", reply + 6);
    }
    ck_assert_uint_eq(ours, QUEUE_TURN_HANDOVERS);
    theirs = world_next_reply(&v);
    ck_assert_ptr_nonnull(theirs);
    ck_assert_int_eq(strncmp(theirs, "#v OK", 5), 0);
    world_deinit(&v);
}
END_TEST

/* The lock goes from one to the next, and there is always one more; whether at once. */
static bool hand_on(void)
{
    world_say(&w, "#u UNLOCK a %s", holder);
    world_expect(&w, "#u OK");
    const char *reply = world_next_reply(&w);
    if (reply == NULL)
        return false;
    ck_assert_int_eq(strncmp(reply, "#h OK ", 6), 0);
    snprintf(holder, sizeof(holder), "%.40s", reply + 6);
    world_say(&w, "#h LOCK a 10s WAIT 100s");
    return true;
}

static void expect_turn(unsigned handovers)
{
    for (unsigned i = 0; i < handovers; i++)
        ck_assert(hand_on());
    ck_assert(!hand_on());
    ck_assert_uint_eq(world_count(&w, "a"), 0);
    world_pass_ms(&w, 10);
    memcpy(holder, world_expect_grant(&w, "h"), sizeof(holder));
    world_say(&w, "#h LOCK a 10s WAIT 100s");
}

START_TEST(where_names_are_shared_who_is_alone_loses_pauses_only)
{
    w.engine.queue_rules.shared_names = true;
    hold_and_wait("#h LOCK a 10s", "#h LOCK a 10s WAIT 100s");
    expect_turn(QUEUE_TURN_HANDOVERS);
    expect_turn(2 * QUEUE_TURN_HANDOVERS);
}
END_TEST

START_TEST(where_nobody_leaves_word_turns_are_over_by_time_alone)
{
    hold_and_wait("#h LOCK a 10s", "#h LOCK a 10s WAIT 100s");
    for (unsigned i = 0; i < 2 * QUEUE_TURN_MOST; i++)
        ck_assert(hand_on());
    world_pass_ms(&w, QUEUE_TURN_NS / NS_PER_MS);
    expect_turn(0);
    ck_assert(hand_on());
}
END_TEST

/* Who comes too late for it, and is gone again, costs pauses until the lock that he saw would have
 * ended. */
START_TEST(word_of_one_who_has_gone_is_forgotten)
{
    with_second_daemon();
    hold_and_wait("#h LOCK a 10s", "#h LOCK a 10s WAIT 100s");
    world_share(&v, &w);
    world_say(&v, "#v LOCK a 1s WAIT 60s");
    world_share(&w, &v);
    ck_assert(hand_on());
    pass_both(5);
    ck_assert_ptr_nonnull(world_value(&w, 0, "redlockd:waits:a"));
    world_lose_client(&v, &v.client);
    pass_both(1);
    expect_turn(QUEUE_TURN_HANDOVERS - 1);
    expect_turn(2 * QUEUE_TURN_HANDOVERS);
    pass_both(9000);
    ck_assert(hand_on());
    pass_both(5000);
    expect_turn(0);
    ck_assert_ptr_null(world_value(&w, 0, "redlockd:waits:a"));
    for (unsigned i = 0; i < 2 * QUEUE_TURN_MOST; i++)
        ck_assert(hand_on());
    world_deinit(&v);
}
END_TEST

/* Held for so long that the daemon looks at its own lock, in vain: the other's word stays. */
START_TEST(word_is_not_lost_to_looks_of_who_has_the_lock)
{
    with_second_daemon();
    hold_and_wait("#h LOCK a 10s", "#h LOCK a 10s WAIT 100s");
    world_share(&v, &w);
    world_say(&v, "#v LOCK a 1s WAIT 60s");
    world_share(&w, &v);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(hand_on());
        pass_both(500);
        ck_assert_mem_eq(world_value(&w, 0, "redlockd:waits:a"), v.engine.daemon, REDIS_DAEMON);
    }
    world_deinit(&v);
}
END_TEST

/* It was released through the other daemon, so that this one still takes it for its own. */
START_TEST(word_is_left_though_a_lock_was_released_elsewhere)
{
    char token[LIMIT_TOKEN + 1];
    with_second_daemon();
    world_say(&w, "#x LOCK a 60s");
    memcpy(token, world_expect_grant(&w, "x"), sizeof(token));
    world_share(&v, &w);
    world_say(&v, "#u UNLOCK a %.40s", token);
    world_say(&v, "#v LOCK a 20s");
    world_share(&w, &v);
    world_say(&w, "#w LOCK a 10s WAIT 60s");
    pass_both(1000);
    ck_assert_mem_eq(world_value(&w, 0, "redlockd:waits:a"), w.engine.daemon, REDIS_DAEMON);
    world_deinit(&v);
}
END_TEST

/* Who does not wait has a chance like any other that is refused. */
START_TEST(who_does_not_wait_leaves_word_too)
{
    with_second_daemon();
    hold_and_wait("#h LOCK a 10s", "#h LOCK a 10s WAIT 100s");
    world_share(&v, &w);
    world_say(&v, "#v LOCK a 1s");
    world_share(&w, &v);
    ck_assert_mem_eq(world_value(&w, 0, "redlockd:waits:a"), v.engine.daemon, REDIS_DAEMON);
    expect_turn(QUEUE_TURN_HANDOVERS);
    world_deinit(&v);
}
END_TEST

START_TEST(word_that_this_daemon_has_left_is_nothing_to_itself)
{
    world_occupy(&w, "a", 2000);
    world_say(&w, "#h LOCK a 10s WAIT 60s");
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(world_value(&w, i, "redlockd:waits:a"));
    world_vacate(&w, "a");
    memcpy(holder, world_expect_grant(&w, "h"), sizeof(holder));
    world_say(&w, "#h LOCK a 10s WAIT 100s");
    for (unsigned i = 0; i < 2 * QUEUE_TURN_HANDOVERS; i++)
        ck_assert(hand_on());
}
END_TEST

START_TEST(two_daemons_that_collide_both_get_it_in_the_end)
{
    with_second_daemon();
    /* Each is first on two masters, and on the fifth somebody else is. */
    world_set(&w, 4, "a", "foreign", 3);
    world_share(&v, &w);
    for (unsigned i = 0; i < 2; i++) {
        w.masters[i].delay_ns = NS_PER_MS;
        v.masters[2 + i].delay_ns = NS_PER_MS;
    }
    world_send(&w, "#w LOCK a 1s WAIT 20s");
    world_send(&v, "#v LOCK a 1s WAIT 20s");
    unsigned granted = 0;
    for (unsigned i = 0; i < 100 && granted < 2; i++) {
        pass_both(100);
        granted = (w.reply_count > 0 ? 1U : 0) + (v.reply_count > 0 ? 1U : 0);
    }
    ck_assert_uint_eq(granted, 2);
    world_deinit(&v);
}
END_TEST

/* --- leaving --- */

START_TEST(a_waiter_leaves_with_its_connection)
{
    world_occupy(&w, "a", 5000);
    world_send_as(&w, &w.others[0], "#x LOCK a 10s WAIT 60s");
    world_send_as(&w, &w.others[1], "#y LOCK a 10s WAIT 60s");
    world_say(&w, "#z LOCK a 10s WAIT 60s");
    world_lose_client(&w, &w.others[0]);
    world_end_client(&w, &w.others[1]);
    world_expect(&w, "undone y");
    ck_assert_uint_eq(w.engine.waiting, 1);
    world_vacate(&w, "a");
    world_expect_grant(&w, "z");
}
END_TEST

START_TEST(a_crowd_that_leaves_starts_no_rounds)
{
    world_occupy(&w, "a", 5000);
    for (unsigned i = 0; i < 900; i++)
        world_send_as(&w, &w.others[0], "#t%u LOCK a 10s WAIT 60s", i);
    world_settle(&w);
    uint64_t asked = w.engine.stats.asked;
    world_lose_client(&w, &w.others[0]);
    world_settle(&w);
    ck_assert_uint_eq(w.engine.stats.asked, asked);
    ck_assert_uint_eq(w.engine.calls.in_use, 0);
    ck_assert_uint_eq(w.engine.resources.pool.in_use, 1);
}
END_TEST

START_TEST(who_has_gone_deaf_hands_on_what_was_granted)
{
    world_occupy(&w, "a", 5000);
    world_send_as(&w, &w.others[0], "#x LOCK a 10s WAIT 60s");
    world_settle(&w);
    world_say(&w, "#z LOCK a 10s WAIT 60s");
    w.deaf = true;
    /* The first grant reaches nobody, and the connection breaks. */
    world_vacate(&w, "a");
    ck_assert(w.others[0].gone);
    world_lose_client(&w, &w.others[0]);
    world_pass_ms(&w, 100);
    expect_values(world_expect_grant(&w, "z"));
    ck_assert_uint_eq(world_count(&w, "a"), 5);
}
END_TEST

START_TEST(a_daemon_that_stops_tells_all_who_wait)
{
    world_occupy(&w, "a", 5000);
    world_say(&w, "#a LOCK a 10s WAIT 60s");
    world_say(&w, "#b LOCK a 10s WAIT 60s");
    world_hang(&w, 5, true);
    world_send(&w, "#c LOCK c 10s WAIT 60s");
    world_send(&w, "#d LOCK c 10s WAIT 60s");
    engine_drain(&w.engine, w.now_ns);
    world_expect(&w, "#a SHUTDOWN");
    world_expect(&w, "#b SHUTDOWN");
    world_expect(&w, "#d SHUTDOWN");
    world_expect(&w, "(nothing)");
    world_hang(&w, 5, false);
    world_settle(&w);
    world_expect_grant(&w, "c");
    ck_assert(!engine_busy(&w.engine));
}
END_TEST

/* Its wait ends while the daemon waits for the round that is under way. */
START_TEST(a_wait_that_ends_while_the_daemon_stops_is_answered_once)
{
    world_hang(&w, 5, true);
    world_say(&w, "#a LOCK a 10s WAIT 10ms");
    engine_drain(&w.engine, w.now_ns);
    world_pass_ms(&w, 40);
    world_expect(&w, "(nothing)");
    world_pass_ms(&w, 11);
    world_expect(&w, "#a SHUTDOWN");
    world_expect(&w, "(nothing)");
}
END_TEST

/* --- bounds --- */

START_TEST(queues_have_their_bounds)
{
    world_occupy(&w, "a", 50000);
    for (unsigned i = 0; i < 1000; i++)
        world_send_as(&w, &w.others[0], "#t%u LOCK a 10s WAIT 60s", i);
    world_settle(&w);
    world_say(&w, "#x LOCK a 10s WAIT 60s");
    world_expect(&w, "#x LIMIT waiters_per_resource");
    w.engine.rules.waiters = 1000;
    world_say(&w, "#x LOCK b 10s WAIT 60s");
    world_expect(&w, "#x LIMIT waiters");
    world_say(&w, "#x LOCK b 10s");
    world_expect_grant(&w, "x");
    world_lose_client(&w, &w.others[0]);
    world_say(&w, "#y LOCK a 10s WAIT 60s");
    world_expect(&w, "(nothing)");
}
END_TEST

/* Requests of others that do not wait fill the table, too: whoever comes then is refused. */
START_TEST(full_tables_refuse)
{
    static const char *const requests[] = {
        "#x STATUS b", "#x LOCK b 10s", "#x LOCK b 10s WAIT 1s",
        "#x UNLOCK b 0123456789012345678901234567890123456789",
        "#x EXTEND b 0123456789012345678901234567890123456789 1s"};
    struct pool *const pools[] = {&w.engine.calls, &w.engine.resources.pool,
                                  &w.engine.operations.pool};
    for (size_t p = 0; p < sizeof(pools) / sizeof(pools[0]); p++) {
        size_t count = pools[p]->count;
        void *free = pools[p]->free;
        pools[p]->free = NULL;
        pools[p]->count = pools[p]->touched;
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
            world_say(&w, "%s", requests[i]);
            world_expect(&w, "#x LIMIT operations");
        }
        pools[p]->count = count;
        pools[p]->free = free;
    }
    world_say(&w, "#x LOCK b 10s");
    world_expect_grant(&w, "x");
    ck_assert_uint_eq(w.engine.calls.in_use, 0);
    ck_assert_uint_eq(w.engine.resources.pool.in_use, 2);
}
END_TEST

START_TEST(ten_thousand_that_wait_cost_nothing_while_nothing_happens)
{
    enum { CLIENTS = 10, RESOURCES = 10, EACH = 100 };
    static struct engine_client clients[CLIENTS];
    char line[64];
    for (unsigned r = 0; r < RESOURCES; r++) {
        snprintf(line, sizeof(line), "r%u", r);
        world_occupy(&w, line, 60000);
    }
    for (unsigned c = 0; c < CLIENTS; c++) {
        engine_client_init(&clients[c], 100 + c);
        for (unsigned i = 0; i < RESOURCES * EACH; i++)
            world_send_as(&w, &clients[c], "#t%u LOCK r%u 10s WAIT 50s", i, i % RESOURCES);
    }
    world_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.waiting, 10000);
    unsigned before = world_commands(&w);
    /* Nothing is due before the first wait ends. */
    ck_assert_int_ge(w.engine.alarms.first_ns, w.now_ns + 49 * NS_PER_S - NS_PER_MS);
    world_pass_ms(&w, 48000);
    ck_assert_uint_eq(world_commands(&w), before);
    ck_assert_uint_le(sizeof(struct call), 256);
    for (unsigned c = 0; c < CLIENTS; c++)
        world_lose_client(&w, &clients[c]);
    ck_assert_uint_eq(w.engine.resources.pool.in_use, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("waits");
    const struct {
        const char *name;
        const TTest *tests[16];
    } cases[] = {
        {"order",
         {each_has_its_place_in_line, waiters_are_served_in_the_order_they_came,
          the_validity_counts_from_the_round_and_the_elapsed_time_from_the_arrival,
          one_round_at_a_time_asks_for_a_resource, who_does_not_wait_does_not_pass_those_who_do,
          a_wait_of_zero_is_no_wait}},
        {"ends",
         {the_wait_ends_when_it_said, a_wait_that_ends_within_a_round_ends_with_it,
          a_wait_outlives_a_lack_of_masters, a_wait_outlives_answers_that_are_late,
          too_short_a_time_to_live_keeps_nobody_waiting, who_does_not_wait_hears_why_the_others_do,
          a_lack_of_masters_that_is_over_is_not_told}},
        {"wakes",
         {a_release_elsewhere_wakes_at_once_and_nothing_is_asked_before,
          an_expiry_elsewhere_wakes_in_time, an_expiry_of_a_lock_granted_here_wakes_in_time,
          a_release_elsewhere_of_a_lock_granted_here_wakes_too, an_extension_elsewhere_is_seen,
          without_tracking_masters_are_looked_at_from_time_to_time,
          where_one_reports_those_are_looked_at_that_cannot,
          who_may_not_vote_is_not_among_those_that_have_it_free,
          who_gets_its_vote_back_is_looked_at, what_was_missed_while_the_reports_were_cut_is_found,
          what_was_missed_while_the_masters_were_away_is_found, a_flush_is_noticed_and_looked_into,
          a_look_that_fails_is_not_the_last,
          nothing_is_written_to_a_connection_that_closed_meanwhile,
          scripts_that_were_flushed_cost_no_report}},
        {"handovers",
         {a_hand_over_that_finds_no_quorum_leaves_neither_token,
          a_hand_over_may_find_a_release_gathered_before_it,
          a_hand_over_whose_connections_are_lost_leaves_neither_token,
          a_hand_over_that_was_never_read_is_made_up_for, a_hand_over_is_guarded,
          a_hand_over_takes_nothing_from_a_stranger, a_hand_over_takes_what_has_expired_for_free,
          a_hand_over_whose_scripts_were_flushed_is_sent_in_full,
          a_hand_over_to_one_who_leaves_goes_on_to_the_next,
          a_token_that_this_daemon_did_not_grant_is_only_released,
          an_unlock_of_an_old_token_takes_nothing_from_the_next,
          an_extension_under_way_does_not_bring_a_released_token_back}},
        {"fences",
         {fences_rise_from_hand_over_to_hand_over, a_hand_over_below_a_fence_bids_again_above_it}},
        {"turns",
         {a_daemon_gives_others_their_turn, where_names_are_shared_who_is_alone_loses_pauses_only,
          where_nobody_leaves_word_turns_are_over_by_time_alone,
          word_of_one_who_has_gone_is_forgotten,
          word_that_this_daemon_has_left_is_nothing_to_itself,
          word_is_not_lost_to_looks_of_who_has_the_lock,
          word_is_left_though_a_lock_was_released_elsewhere, who_does_not_wait_leaves_word_too,
          two_daemons_that_collide_both_get_it_in_the_end}},
        {"leaving",
         {a_waiter_leaves_with_its_connection, a_crowd_that_leaves_starts_no_rounds,
          who_has_gone_deaf_hands_on_what_was_granted, a_daemon_that_stops_tells_all_who_wait,
          a_wait_that_ends_while_the_daemon_stops_is_answered_once}},
        {"bounds",
         {queues_have_their_bounds, full_tables_refuse,
          ten_thousand_that_wait_cost_nothing_while_nothing_happens}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        TCase *tests = tcase_create(cases[i].name);
        tcase_add_checked_fixture(tests, setup, teardown);
        tcase_set_timeout(tests, 60);
        for (const TTest *const *test = cases[i].tests; *test != NULL; test++)
            tcase_add_test(tests, *test);
        suite_add_tcase(suite, tests);
    }
    return suite;
}
