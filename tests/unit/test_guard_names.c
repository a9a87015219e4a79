/*
 * Each node name must lead to a server of its own, and always to the same one. The tests run the
 * guard in the engine, on fake masters and virtual time.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"
#include "tests/unit/cluster_guard.h"

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

/* The identity and data of a server. */
struct server {
    char run_id[RECORD_ID + 1];
    char replid[RECORD_ID + 1];
    struct fake_data keys;
};

static struct server original;
static const struct server stranger = {
    .run_id = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
    .replid = "ffffffffffffffffffffffffffffffffffffffff",
};

/* From now on the name of A leads to another server. */
static void repoint_to(const struct server *server)
{
    struct fake_master *master = &w.masters[0].redis;
    memcpy(master->run_id, server->run_id, sizeof(master->run_id));
    memcpy(master->replid, server->replid, sizeof(master->replid));
    master->data = server->keys;
    fake_close_all(master);
    if (w.connections[0][CHANNEL_COMMANDS].open)
        cluster_cut(&w, 0);
}

/* Let the name of A lead to the stranger until a quarantine has passed. */
static void repoint_to_stranger(void)
{
    const struct fake_master *master = &w.masters[0].redis;
    memcpy(original.run_id, master->run_id, sizeof(master->run_id));
    memcpy(original.replid, master->replid, sizeof(master->replid));
    original.keys = master->data;
    repoint_to(&stranger);
    cluster_pass_ms(&w, QUARANTINE_MS + 5 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* The name of E leads to a server with the run id and the data of B. */
TEST(duplicate_master_has_one_vote)
{
    cluster_kill(&w, 4);
    struct fake_master *copy = &w.masters[4].redis;
    memcpy(copy->run_id, w.masters[1].redis.run_id, sizeof(copy->run_id));
    memcpy(copy->replid, w.masters[1].redis.replid, sizeof(copy->replid));
    copy->data = w.masters[1].redis.data;
    w.masters[4].dead = false;
    cluster_pass_ms(&w, 3000);
    cluster_expect_votes(&w, 1, 1, "-");
    cluster_expect_votes(&w, 4, 4, "duplicate");
}

/* The other masters lease the name to the previous process until shortly before the quarantine
 * ends, and this daemon hears of the end with its next heartbeat. Nothing leads to two servers
 * then. */
TEST(restarted_master_is_not_shown_as_repointed)
{
    for (unsigned i = 0; i < 5; i++) {
        cluster_pass_ms(&w, 230);
        cluster_restart(&w, 0);
        cluster_pass_ms(&w, QUARANTINE_MS - OBSERVED_MS);
        cluster_expect_votes(&w, 0, 0, "restarted");
        for (unsigned ms = 0; ms < 4 * OBSERVED_MS; ms += 10) {
            cluster_pass_ms(&w, 10);
            ck_assert_str_ne(cluster_vote(&w, 0), "repointed");
        }
        cluster_expect_votes(&w, 0, 4, "-");
    }
}

TEST(name_leased_to_another_server_has_no_vote)
{
    cluster_lease_to_another(&w, 4, ":b", 10000);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 1, 1, "repointed");
    cluster_pass_ms(&w, 10 * 1000);
    cluster_expect_votes(&w, 1, 1, "-");
}

/* A daemon counts votes of A for a while after its last heartbeat to the other masters, and may end
 * then. A lock of the longest TTL that was granted so late ends before the leases on A's name. */
TEST(lease_outlives_the_locks_of_its_last_renewal)
{
    const struct guard *guard = &w.engine.flights.guard;
    const char *key = cluster_guard_key(&w, "name", ":a");
    cluster_pass_ms(&w, OBSERVED_MS);
    for (unsigned i = 1; i < 5; i++) {
        int64_t started_ns = guard->nodes[i].heartbeat_sent_ns + guard->periods.fresh_ns;
        int64_t until_ns = valid_until(&guard->periods.drift, 60 * NS_PER_S, started_ns);
        const struct fake_key *lease =
            fake_find(&w.masters[i].redis, key, strlen(key), cluster_clock_us(&w, i));
        ck_assert_ptr_nonnull(lease);
        ck_assert_int_ge(lease->ends_ms * NS_PER_MS - w.masters[i].clock_ns, until_ns);
    }
}

/* A lock is granted while A's name leads to the stranger. Then the name leads back to the original
 * server, which does not have the key. */
TEST(name_that_leads_back_to_an_old_server_has_no_vote_for_max_ttl)
{
    repoint_to_stranger();
    cluster_lock_on_three(&w);
    repoint_to(&original);
    cluster_expect_no_grant_for_s(&w, 59);
}

/* All leases on the name have expired. The single daemon still knows which server's votes it has
 * counted. */
TEST(name_that_leads_back_loses_its_vote_without_a_lease)
{
    repoint_to_stranger();
    cluster_lock_on_three(&w);
    repoint_to(&original);
    for (unsigned i = 0; i < 5; i++)
        cluster_delete(&w, i, cluster_guard_key(&w, "name", ":a"));
    cluster_pass_ms(&w, 3 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "restarted");
    cluster_expect_no_grant_for_s(&w, 56);
}

TEST(name_that_leads_back_during_a_restart_loses_its_vote)
{
    repoint_to_stranger();
    cluster_lock_on_three(&w);
    cluster_pass_ms(&w, OBSERVED_MS);
    repoint_to(&original);
    cluster_restart_engine(&w, "here");
    cluster_expect_no_grant_for_s(&w, 57);
}

/* A and B report that E's name is leased to another server, and then hang. Their report must not be
 * forgotten. */
TEST(lease_conflict_outlives_the_masters_that_reported_it)
{
    for (unsigned i = 0; i < 2; i++)
        cluster_lease_to_another(&w, i, ":e", 3600 * 1000);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 4, 4, "repointed");
    w.masters[0].hung = w.masters[1].hung = true;
    cluster_pass_ms(&w, 5000);
    cluster_expect_votes(&w, 4, 4, "repointed");
}

/* B alone reports that A's name is leased to another server, and then loses that lease: it restarts
 * empty, it is flushed, or its clock steps. In half of the runs B hangs before that. In the last
 * run, C reports the same for 10 s. The other daemon learns of the loss with its next heartbeat, so
 * its locks can outlive the quarantine of B. No answer of B ends the conflict before. */
TEST_LOOP(lease_conflict_outlives_the_lease_that_its_master_has_lost, 0, 7)
{
    cluster_lease_to_another(&w, 1, ":a", 60 * 1000);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "repointed");
    if (_i == 6) {
        cluster_lease_to_another(&w, 2, ":a", 10 * 1000);
    } else if (_i >= 3) {
        w.masters[1].hung = true;
        cluster_pass_ms(&w, 40 * 1000);
        w.masters[1].hung = false;
    }
    if (_i % 3 == 0)
        cluster_restart(&w, 1);
    else if (_i % 3 == 1)
        cluster_flush(&w, 1);
    else
        cluster_step_clock(&w, 1, 1, 3600);
    for (unsigned ms = 0; ms < QUARANTINE_MS + 4000; ms += 10) {
        cluster_pass_ms(&w, 10);
        cluster_expect_votes(&w, 0, 0, "repointed");
    }
    cluster_pass_ms(&w, 12 * 1000);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* B alone reports that A's name is leased to another server. Then A is away until this report is
 * out of date, while another daemon goes on renewing the lease on B. */
static void let_a_conflict_expire(void)
{
    cluster_lease_to_another(&w, 1, ":a", 60 * 1000);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "repointed");
    w.masters[0].hung = true;
    cluster_pass_ms(&w, QUARANTINE_MS + 6000);
    cluster_lease_to_another(&w, 1, ":a", 60 * 1000);
    w.masters[0].hung = false;
}

/* B answers later than the others. A must not vote before that. */
TEST(name_waits_for_the_master_that_reported_a_conflict_long_ago)
{
    let_a_conflict_expire();
    w.masters[1].delay_ns = 4 * NS_PER_MS;
    for (unsigned ms = 0; ms < 3000; ms++) {
        cluster_pass_ms(&w, 1);
        ck_assert_str_ne(cluster_vote(&w, 0), "-");
    }
    cluster_expect_votes(&w, 0, 0, "repointed");
}

/* B loses the lease just before A is back. */
TEST(conflict_of_long_ago_lasts_if_its_master_has_lost_the_lease)
{
    let_a_conflict_expire();
    cluster_flush(&w, 1);
    for (unsigned ms = 0; ms < 59000; ms++) {
        cluster_pass_ms(&w, 1);
        ck_assert_str_ne(cluster_vote(&w, 0), "-");
    }
    cluster_pass_ms(&w, 10 * 1000);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* Only B knows that A's name is leased to another server, and B answers no heartbeat on its first
 * connection to the daemon (0), or on the first one after a loss (1). */
TEST_LOOP(name_waits_for_the_first_silent_connection, 0, 2)
{
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_lease_to_another(&w, 1, ":a", 60 * 1000);
    w.masters[1].redis.paused = true;
    if (_i == 0) {
        cluster_restart_engine(&w, "here");
    } else {
        cluster_cut(&w, 1);
        cluster_pass_ms(&w, 100);
        cluster_cut(&w, 0);
    }
    for (unsigned ms = 0; ms < 800; ms++) {
        cluster_pass_ms(&w, 1);
        ck_assert_str_ne(cluster_vote(&w, 0), "-");
    }
    cluster_expect_votes(&w, 0, 0, "unchecked");
    w.masters[1].redis.paused = false;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "repointed");
}

/* C answers the greeting, but no heartbeat. The daemon waits for it during the first connection
 * only. */
TEST(master_that_never_answers_takes_no_votes_from_the_others)
{
    const struct link *link = &w.engine.flights.masters[2].link;
    unsigned lost = 0;
    w.masters[2].redis.paused = true;
    cluster_restart_engine(&w, "here");
    for (unsigned ms = 0; ms < 20000; ms++) {
        bool connected = link_is_connected(link->state);
        cluster_pass_ms(&w, 1);
        lost += connected && !link_is_connected(link->state);
        if (lost == 0)
            continue;
        cluster_expect_votes(&w, 0, 1, "-");
        cluster_expect_votes(&w, 3, 4, "-");
    }
    ck_assert_uint_ge(lost, 5);
    w.masters[2].redis.paused = false;
    cluster_pass_ms(&w, 5000);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* A and C restart, and B reports conflicts for both and dies. A and C get their votes back, and
 * keep them when B returns without its data. */
TEST(names_that_vote_without_a_master_do_not_doubt_it_when_it_returns)
{
    cluster_restart(&w, 0);
    cluster_restart(&w, 2);
    cluster_pass_ms(&w, 5000);
    cluster_kill(&w, 1);
    cluster_pass_ms(&w, 2 * QUARANTINE_MS + 10 * 1000);
    cluster_expect_votes(&w, 0, 0, "-");
    cluster_expect_votes(&w, 2, 4, "-");
    w.masters[1].dead = false;
    for (unsigned ms = 0; ms < 10000; ms += 100) {
        cluster_pass_ms(&w, 100);
        cluster_expect_votes(&w, 0, 0, "-");
        cluster_expect_votes(&w, 2, 4, "-");
    }
    cluster_expect_votes(&w, 1, 1, "flushed");
}

/* A reports that another server has E's name. The conflict expires, and A reports it again. A vote
 * that was requested in between must not count, so the epoch changes. */
TEST(repeated_conflict_voids_votes_in_flight)
{
    struct guard *guard = &w.engine.flights.guard;
    struct guard_heartbeat heartbeat;
    char beats[IDENTITY_BEATS];
    char other[96];
    guard_heartbeat(guard, 0, w.now_ns, &heartbeat);
    ck_assert_uint_eq(heartbeat.names, 0x1f);
    cluster_next_beats(&w, 0, beats);
    size_t len = (size_t)snprintf(other, sizeof(other), "00001 %s - - -", beats);
    guard_on_heartbeat(guard, 0, &heartbeat, w.now_ns, other, len, w.now_ns);
    cluster_expect_votes(&w, 4, 4, "repointed");
    w.now_ns++;
    guard->nodes[4].lease.conflict_until_ns = w.now_ns;
    cluster_expect_votes(&w, 4, 4, "-");
    uint32_t epoch = guard_epoch(guard, 4);
    cluster_next_beats(&w, 0, beats);
    len = (size_t)snprintf(other, sizeof(other), "00001 %s - - -", beats);
    guard_on_heartbeat(guard, 0, &heartbeat, w.now_ns, other, len, w.now_ns);
    cluster_expect_votes(&w, 4, 4, "repointed");
    ck_assert_uint_ne(guard_epoch(guard, 4), epoch);
}

/* While E is down, its name is leased to another server. After the reconnect E must not vote before
 * the daemon has asked the other masters for the lease again. */
TEST(lease_is_renewed_after_a_reconnect)
{
    static struct fake_data keys;
    keys = w.masters[4].redis.data;
    cluster_kill(&w, 4);
    w.masters[4].redis.data = keys;
    cluster_pass_ms(&w, 12000);
    for (unsigned i = 0; i < 4; i++)
        cluster_lease_to_another(&w, i, ":e", 3600 * 1000);
    w.masters[4].dead = false;
    for (unsigned i = 0; i < 5000; i++) {
        cluster_pass_ms(&w, 1);
        ck_assert_str_ne(cluster_vote(&w, 4), "-");
    }
    cluster_expect_votes(&w, 4, 4, "repointed");
}

/* While A is busy, its name lease ends and the name is leased to another server. A must not vote
 * before the daemon has asked the other masters for the lease again. */
TEST(lease_is_renewed_after_a_master_was_busy)
{
    w.masters[0].redis.refusals[FAKE_LOADING] = "BUSY Redis is busy running a script";
    cluster_pass_ms(&w, QUARANTINE_MS + 6000);
    for (unsigned i = 1; i < 5; i++) {
        ck_assert_ptr_null(cluster_value(&w, i, cluster_guard_key(&w, "name", ":a")));
        cluster_lease_to_another(&w, i, ":a", 3600 * 1000);
    }
    w.masters[0].redis.refusals[FAKE_LOADING] = NULL;
    for (unsigned i = 0; i < 3000; i++) {
        cluster_pass_ms(&w, 1);
        ck_assert_str_ne(cluster_vote(&w, 0), "-");
    }
    cluster_expect_votes(&w, 0, 0, "repointed");
}

/* B and C answer a heartbeat late. That heartbeat asked about the server to which A's name led
 * before, so the late answers must not give the new server a lease. */
TEST(late_heartbeat_is_judged_by_its_own_request)
{
    cluster_pass_ms(&w, 2000);
    w.masters[1].hung = w.masters[2].hung = true;
    cluster_pass_ms(&w, 1200);
    cluster_restart_recorded(&w, 0);
    cluster_pass_ms(&w, (w.engine.flights.masters[0].link.retry_ns - w.now_ns) / NS_PER_MS);
    w.masters[3].delay_ns = w.masters[4].delay_ns = 3 * NS_PER_MS;
    for (unsigned i = 3; i < 5; i++)
        guard_io_heartbeat(&w.engine.flights.masters[i], w.now_ns);
    cluster_pass_ms(&w, 1);
    w.masters[1].delay_ns = w.masters[2].delay_ns = 2 * NS_PER_MS;
    w.masters[1].hung = w.masters[2].hung = false;
    cluster_settle(&w);
    ck_assert(!cluster_granted(cluster_ask(&w, "LOCK a 60s")));
}

/* While this daemon is stopped, A is replaced by a server whose clock is 50 s behind, and another
 * daemon grants a lock by a vote of that server and ends. Then the clock steps to the right time,
 * which is what the clock of the first server showed. */
TEST(clock_of_one_server_does_not_vouch_for_that_of_another)
{
    static struct cluster v;
    cluster_restart(&w, 0);
    cluster_step_clock(&w, 0, 0, -50);
    cluster_join(&v, &w, "elsewhere");
    cluster_pass_ms(&v, QUARANTINE_MS + 10 * 1000);
    cluster_expect_votes(&v, 0, 4, "-");
    cluster_lock_on_three(&v);
    cluster_step_clock(&w, 0, 0, 50);
    cluster_share(&w, &v);
    cluster_expect_no_grant_for_s(&w, 57);
    cluster_deinit(&v);
}
