/*
 * How a daemon notices that a lock with waiters is free: the masters report the change of a tracked
 * key, the key expires, or a key probe finds no key. The tests run the shipped engine on fake
 * masters and virtual time.
 */
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = cluster_teardown};

TEST(release_elsewhere_wakes_the_waiter_without_polling)
{
    cluster_occupy(&w, "a", 60000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    unsigned before = cluster_commands(&w);
    cluster_pass_ms(&w, 40000);
    ck_assert_uint_eq(cluster_commands(&w), before);
    cluster_vacate(&w, "a");
    cluster_expect_grant(&w, "a");
    /* A probe and a SET on each master. */
    ck_assert_uint_eq(cluster_commands(&w) - before, 10);
}

/* Client n sends a LOCK without WAIT. Waiter a joins while that round is in flight. It starts no
 * round of its own, but relies on what n's round finds. */
TEST(waiter_that_joins_during_a_round_is_woken_at_once)
{
    cluster_occupy(&w, "a", 60000);
    cluster_send(&w, "#n LOCK a 10s");
    cluster_send(&w, "#a LOCK a 10s WAIT 60s");
    cluster_settle(&w);
    cluster_expect(&w, "#n HELD 60000");
    cluster_vacate(&w, "a");
    cluster_expect_grant(&w, "a");
}

TEST(expiry_elsewhere_wakes_the_waiter_on_time)
{
    cluster_occupy(&w, "a", 20000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 19999);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 2);
    cluster_expect_grant(&w, "a");
}

TEST(expiry_of_a_local_lock_wakes_the_waiter_on_time)
{
    cluster_submit(&w, "#a LOCK a 5s");
    cluster_expect_grant(&w, "a");
    cluster_pass_ms(&w, 1000);
    cluster_submit(&w, "#b LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 3999);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 3);
    cluster_expect_grant(&w, "b");
}

/* The holder unlocks through another daemon. */
TEST(release_elsewhere_of_a_local_lock_wakes_the_waiter)
{
    cluster_submit(&w, "#a LOCK a 50s");
    cluster_expect_grant(&w, "a");
    cluster_submit(&w, "#b LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 500);
    cluster_expect(&w, "(nothing)");
    cluster_vacate(&w, "a");
    cluster_expect_grant(&w, "b");
}

/* The holder unlocks through another daemon. Each client here waits for less than the time for
 * which the daemon asks no master about a lock that it has just granted. */
TEST(release_elsewhere_of_a_local_lock_is_seen_by_a_short_wait)
{
    cluster_submit(&w, "#a LOCK a 50s");
    cluster_expect_grant(&w, "a");
    cluster_pass_ms(&w, 1000);
    cluster_submit(&w, "#b LOCK a 10s WAIT 50ms");
    cluster_pass_ms(&w, 50);
    cluster_expect(&w, "#b HELD 48950");
    cluster_vacate(&w, "a");
    cluster_submit(&w, "#c LOCK a 10s WAIT 50ms");
    cluster_pass_ms(&w, 50);
    cluster_expect_grant(&w, "c");
}

/* Another daemon extends the lock, so its keys expire after 31 s instead of 2 s. The waiter must
 * not start a round before 31 s have passed. */
TEST(extension_elsewhere_prolongs_the_sleep)
{
    cluster_occupy(&w, "a", 2000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 30000);
    cluster_settle(&w);
    uint64_t rounds_before = w.engine.stats.acquire_rounds;
    cluster_pass_ms(&w, 29000);
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, rounds_before);
    cluster_pass_ms(&w, 1002);
    cluster_expect_grant(&w, "a");
}

TEST(masters_without_tracking_are_polled)
{
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
        cluster_cut(&w, i);
    }
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 60000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 10000);
    unsigned probes = w.masters[0].redis.runs[REDIS_SCRIPT_STATUS];
    ck_assert_uint_ge(probes, 20);
    ck_assert_uint_le(probes, 40);
    cluster_vacate(&w, "a");
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 500);
    cluster_expect_grant(&w, "a");
}

/* The key is deleted on C, D and E, but E cannot report. Two reports are no quorum, so the reports
 * of C and D must also cause a probe of E. */
TEST(report_also_probes_masters_that_cannot_report)
{
    w.masters[4].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
    cluster_cut(&w, 4);
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 60000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 5000);
    for (unsigned i = 2; i < 5; i++)
        cluster_delete(&w, i, "a");
    cluster_settle(&w);
    cluster_expect_grant(&w, "a");
}

/* Of three masters, A keeps a leftover key and C cannot report. After B's report the lock is free
 * as soon as C deletes the key, so the daemon polls C. */
TEST(untracked_masters_are_polled_once_the_others_are_free)
{
    cluster_deinit(&w);
    cluster_init(&w, 3);
    w.masters[2].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
    cluster_cut(&w, 2);
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 25000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    cluster_delete(&w, 1, "a");
    cluster_pass_ms(&w, 1000);
    cluster_delete(&w, 2, "a");
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 500);
    cluster_expect_grant(&w, "a");
}

/* D and E have restarted without data, so they are in quarantine and cannot vote. A and B still
 * have a foreign key. So the key is absent on a quorum of the masters, but only one of these (C)
 * can vote. */
TEST(masters_without_a_vote_do_not_count_as_free)
{
    for (unsigned i = 3; i < 5; i++)
        cluster_restart(&w, i);
    cluster_pass_ms(&w, 3000);
    ck_assert_str_eq(cluster_vote(&w, 4), "restarted");
    for (unsigned i = 0; i < 2; i++)
        cluster_set(&w, i, "a", "foreign", 40000);
    uint64_t rounds_before = w.engine.stats.acquire_rounds;
    cluster_submit(&w, "#a LOCK a 10s WAIT 100s");
    cluster_pass_ms(&w, 10000);
    ck_assert_uint_le(w.engine.stats.acquire_rounds - rounds_before, 3);
    cluster_expect(&w, "(nothing)");
    cluster_delete(&w, 0, "a");
    cluster_settle(&w);
    ck_assert_uint_le(w.engine.stats.acquire_rounds - rounds_before, 4);
    cluster_delete(&w, 1, "a");
    cluster_settle(&w);
    cluster_expect_grant(&w, "a");
}

/* A and B have a foreign key, and D and E have no vote after a restart. Once D and E vote again,
 * the key is free on a quorum of masters that can vote (C, D and E). */
TEST(master_that_regains_its_vote_is_probed)
{
    for (unsigned i = 3; i < 5; i++)
        cluster_restart(&w, i);
    cluster_pass_ms(&w, 3000);
    for (unsigned i = 0; i < 2; i++)
        cluster_set(&w, i, "a", "foreign", 1000000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 100s");
    cluster_pass_ms(&w, 50000);
    ck_assert_str_eq(cluster_vote(&w, 4), "restarted");
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 20000);
    ck_assert_str_eq(cluster_vote(&w, 4), "-");
    cluster_expect_grant(&w, "a");
}

/* Two masters have a foreign key, two are free, and the vote of the fifth would decide. Returns the
 * number of acquire rounds that the daemon begins within `ms`. */
static uint64_t rounds_in_vain(int64_t ms)
{
    for (unsigned i = 0; i < 2; i++)
        cluster_set(&w, i, "a", "foreign", 50000);
    uint64_t rounds_before = w.engine.stats.acquire_rounds;
    cluster_submit(&w, "#a LOCK a 10s WAIT 100s");
    cluster_pass_ms(&w, ms);
    ck_assert_str_eq(cluster_vote(&w, 4), "-");
    cluster_expect(&w, "(nothing)");
    return w.engine.stats.acquire_rounds - rounds_before;
}

/* The fifth master refuses each SET but executes the undo of each round. Its reply to the undo says
 * that there is no key. That must not make the daemon begin the next round at once. */
TEST(rounds_in_vain_for_a_refusing_master_have_pauses)
{
    w.masters[4].redis.refusals[FAKE_SETTING] = "OOM command not allowed";
    w.masters[4].delay_ns = NS_PER_MS;
    ck_assert_uint_le(rounds_in_vain(900), 15);
    w.masters[4].redis.refusals[FAKE_SETTING] = NULL;
    cluster_pass_ms(&w, 300);
    cluster_expect_grant(&w, "a");
}

TEST(rounds_in_vain_for_a_master_without_votes_have_pauses)
{
    /* The fifth master answers so slowly that no sample proves its clock steady, so its votes do
     * not count. */
    w.masters[4].delay_ns = 15 * NS_PER_MS;
    ck_assert_uint_le(rounds_in_vain(900), 10);
    w.masters[4].delay_ns = 0;
    cluster_pass_ms(&w, 300);
    cluster_expect_grant(&w, "a");
}

TEST(release_missed_without_tracking_connections_is_found)
{
    cluster_occupy(&w, "a", 60000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    for (unsigned i = 0; i < 5; i++)
        cluster_cut_tracker(&w, i);
    cluster_vacate(&w, "a");
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 600);
    cluster_expect_grant(&w, "a");
}

TEST(release_missed_without_connections_is_found)
{
    cluster_occupy(&w, "a", 60000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    for (unsigned i = 0; i < 5; i++) {
        cluster_cut(&w, i);
        cluster_cut_tracker(&w, i);
        cluster_delete(&w, i, "a");
    }
    cluster_pass_ms(&w, 600);
    cluster_expect_grant(&w, "a");
}

TEST(flush_causes_a_probe)
{
    cluster_occupy(&w, "a", 60000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 300s");
    cluster_pass_ms(&w, 1000);
    uint64_t probes = w.engine.stats.key_probes;
    for (unsigned i = 0; i < 3; i++)
        cluster_flush(&w, i);
    cluster_settle(&w);
    ck_assert_uint_gt(w.engine.stats.key_probes, probes);
    cluster_pass_ms(&w, 50000);
    /* Two masters have the key; three have lost it and are in quarantine. */
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 30000);
    cluster_expect_grant(&w, "a");
}

/* The masters report that the key was deleted, but refuse the key probe that follows. */
TEST(failed_probe_is_repeated)
{
    cluster_occupy(&w, "a", 60000);
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
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

/* A cannot report, so B's report causes a probe of A. A hangs, and its connection is lost after the
 * waiter has left. The resource must then be freed. */
TEST(lost_probe_does_not_keep_a_resource_without_waiters)
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

/* The daemon was stopped. When it resumes, a connection has been lost and a probe is long overdue:
 * the probe must not be written to that connection. */
TEST(probe_is_not_written_to_a_closed_connection)
{
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].redis.refusals[FAKE_TRACKING] = "ERR Unknown subcommand";
        cluster_cut(&w, i);
    }
    cluster_pass_ms(&w, 1000);
    cluster_occupy(&w, "a", 30000);
    cluster_submit(&w, "#w LOCK a 10s WAIT 60s");
    w.now_ns += 2 * NS_PER_S;
    cluster_cut(&w, 0);
    cluster_vacate(&w, "a");
    cluster_pass_ms(&w, 600);
    cluster_expect_grant(&w, "w");
}

/* The masters have lost their scripts, so the EVALSHA that undoes the refused LOCK fails, and the
 * engine sends an EVAL with the whole script instead. The masters do not track the key of that
 * EVAL, so none of them reports the later release. The waiter must get the lock nevertheless. */
TEST(flushed_scripts_lose_no_report)
{
    cluster_occupy(&w, "a", 60000);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.scripts_flushed = true;
    cluster_submit(&w, "#a LOCK a 10s WAIT 60s");
    cluster_pass_ms(&w, 1000);
    cluster_vacate(&w, "a");
    cluster_pass_ms(&w, 500);
    cluster_expect_grant(&w, "a");
}

/* --- no quorum votes --- */

enum { KEYS = 50 };

/* Three masters hang, so no quorum votes. Clients wait for KEYS keys. */
static void wait_without_quorum(const char *wait)
{
    cluster_hang(&w, 3, true);
    cluster_pass_ms(&w, 3000);
    for (unsigned i = 0; i < KEYS; i++)
        cluster_send(&w, "#%u LOCK key-%u 10s WAIT %s", i, i, wait);
    cluster_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.reply_count, 0);
}

static unsigned grants(void)
{
    unsigned count = 0;
    for (const char *reply; (reply = cluster_next_reply(&w)) != NULL;)
        count += strstr(reply, " OK ") != NULL;
    return count;
}

TEST(queues_rest_until_a_quorum_votes)
{
    wait_without_quorum("60s");
    uint64_t before = w.engine.stats.acquire_rounds;
    cluster_pass_ms(&w, 20000);
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, before);
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(grants(), KEYS);
}

/* Three masters have restarted, and are in quarantine until their lost locks have ended. */
TEST(queues_rest_until_a_quarantine_ends)
{
    wait_without_quorum("24h");
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(grants(), KEYS);
    for (unsigned i = 0; i < 3; i++)
        cluster_restart(&w, i);
    cluster_pass_ms(&w, 1000);
    ck_assert_str_eq(cluster_vote(&w, 0), "restarted");
    cluster_send(&w, "#b LOCK b 10s WAIT 24h");
    cluster_pass_ms(&w, 2000);
    uint64_t before = w.engine.stats.acquire_rounds;
    while (strcmp(cluster_vote(&w, 0), "-") != 0 && strcmp(cluster_vote(&w, 1), "-") != 0 &&
           strcmp(cluster_vote(&w, 2), "-") != 0) {
        ck_assert_str_eq(cluster_take_reply(&w), "(nothing)");
        /* When the quarantine of a master ends, a round tries whether it votes. */
        ck_assert_uint_le(w.engine.stats.acquire_rounds, before + 3);
        cluster_pass_ms(&w, 10);
    }
    cluster_pass_ms(&w, 300);
    cluster_expect_grant(&w, "b");
}

TEST(waiter_of_a_resting_queue_gets_the_present_reasons)
{
    wait_without_quorum("20s");
    cluster_kill(&w, 0);
    cluster_pass_ms(&w, 1000);
    uint64_t before = w.engine.stats.acquire_rounds;
    cluster_submit(&w, "#try LOCK key-1 10s");
    cluster_expect(&w, "#try NOQUORUM 2/5 need=3 a:%s b:%s c:%s", cluster_vote(&w, 0),
                   cluster_vote(&w, 1), cluster_vote(&w, 2));
    cluster_kill(&w, 1);
    cluster_pass_ms(&w, 19000);
    cluster_expect(&w, "#0 NOQUORUM 2/5 need=3 a:%s b:%s c:%s", cluster_vote(&w, 0),
                   cluster_vote(&w, 1), cluster_vote(&w, 2));
    ck_assert_str_eq(cluster_vote(&w, 0), cluster_vote(&w, 1));
    ck_assert_str_ne(cluster_vote(&w, 1), cluster_vote(&w, 2));
    ck_assert_uint_eq(w.reply_count, 1 + KEYS);
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, before);
}

/* C has restarted. The leases of its name are still those of its earlier process, which another
 * daemon seems to use for an hour. They end just before C's quarantine does. */
TEST(queues_wake_when_a_vote_comes_sooner_than_expected)
{
    struct name_lease *lease = &w.engine.flights.guard.nodes[2].lease;
    cluster_hang(&w, 2, true);
    cluster_restart(&w, 2);
    cluster_pass_ms(&w, 3000);
    ck_assert_str_eq(cluster_vote(&w, 2), "restarted");
    ck_assert_uint_ne(lease->conflicts, 0);
    lease->handover_ns = w.now_ns + 3600 * NS_PER_S;
    /* The heartbeats that find the leases ended come before the end of the quarantine. */
    cluster_pass_ms(&w, 300);
    for (unsigned i = 2; i < 5; i++)
        guard_io_heartbeat(&w.engine.flights.masters[i], w.now_ns);
    cluster_submit(&w, "#a LOCK a 10s WAIT 24h");
    while (strcmp(cluster_vote(&w, 2), "-") != 0)
        cluster_pass_ms(&w, 1);
    ck_assert_uint_eq(lease->conflicts, 0);
    ck_assert_str_eq(cluster_take_reply(&w), "(nothing)");
    cluster_pass_ms(&w, 50);
    cluster_expect_grant(&w, "a");
}

/* A full link empties by itself, and nothing reports that. So a queue must not rest until then. */
TEST(full_link_is_no_reason_to_rest)
{
    struct master *master = &w.engine.flights.masters[0];
    master->link.load += LIMIT_LINK_VOTES;
    ck_assert_int_eq(master_refuses_vote(master, w.now_ns), REASON_BACKLOG);
    ck_assert_int_le(master_refuses_until_ns(master, w.now_ns), w.now_ns);
    master->link.load -= LIMIT_LINK_VOTES;
}
