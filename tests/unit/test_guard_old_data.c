/*
 * A master whose data goes back to an earlier state of its own has no vote for max_ttl, although
 * its record has not changed. The tests run the guard in the engine, on fake masters and virtual
 * time. The comments call the five masters A to E.
 */
#include <string.h>

#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"
#include "tests/unit/cluster_guard.h"

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

/* A's data goes back to what it was three seconds before, record included, and A stays the same
 * process (_i 0). Or A's machine is reset to a snapshot of three seconds before (_i 1): the
 * connections are lost, too. */
TEST_LOOP(data_that_goes_back_costs_the_vote, 0, 2)
{
    static struct fake_data before;
    before = w.masters[0].redis.data;
    cluster_pass_ms(&w, 3000);
    w.masters[0].redis.data = before;
    if (_i == 1)
        cluster_cut(&w, 0);
    cluster_expect_quarantine(&w, 0, 0, "olddata");
}

/* A restarts from an old file while this daemon is cut off. Another daemon, which has just started,
 * records the restart and counts A's votes after the quarantine. Then this daemon, which has seen
 * later beats of A, comes back. That is no reason for another quarantine. */
TEST(daemon_that_comes_back_after_a_recorded_restart_costs_no_vote)
{
    static struct cluster newcomer;
    static struct fake_data before;
    before = w.masters[0].redis.data;
    cluster_pass_ms(&w, 300 * 1000);
    cluster_restart(&w, 0);
    w.masters[0].redis.data = before;
    cluster_join(&newcomer, &w, "elsewhere");
    cluster_pass_ms(&newcomer, OBSERVED_MS);
    cluster_expect_votes(&newcomer, 0, 0, "restarted");
    /* This daemon had renewed its lease on A's name just before, so the lease outlives the
     * quarantine. */
    cluster_pass_ms(&newcomer, QUARANTINE_MS);
    cluster_expect_votes(&newcomer, 0, 0, "repointed");
    cluster_pass_ms(&newcomer, 5000);
    cluster_expect_votes(&newcomer, 0, 4, "-");
    cluster_share(&w, &newcomer);
    cluster_pass_ms(&w, 2000);
    cluster_share(&newcomer, &w);
    cluster_pass_ms(&newcomer, 2000);
    cluster_expect_votes(&newcomer, 0, 4, "-");
    cluster_share(&w, &newcomer);
    cluster_deinit(&newcomer);
}

/* A's name leads to a server of another set for three seconds, and back to A. */
TEST(beats_of_another_server_do_not_count)
{
    static struct fake_data data;
    struct fake_master *master = &w.masters[0].redis;
    char run_id[sizeof(master->run_id)];
    char replid[sizeof(master->replid)];
    cluster_pass_ms(&w, 3000);
    memcpy(run_id, master->run_id, sizeof(run_id));
    memcpy(replid, master->replid, sizeof(replid));
    data = master->data;
    cluster_restart(&w, 0);
    cluster_set(&w, 0, RECORD_KEY, cluster_value(&w, 1, RECORD_KEY), 0);
    cluster_forge(&w, 0, w.engine.flights.guard.set_id, "0123456789abcdef");
    cluster_pass_ms(&w, 3000);
    cluster_expect_votes(&w, 0, 0, "otherset");
    fake_close_all(master);
    cluster_cut(&w, 0);
    memcpy(master->run_id, run_id, sizeof(run_id));
    memcpy(master->replid, replid, sizeof(replid));
    master->data = data;
    cluster_pass_ms(&w, 4000);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* The lock is granted by A, B and C. Then A is reset to a snapshot from before the lock. */
TEST(reset_master_counts_no_vote_for_a_lock_that_it_forgot)
{
    static struct fake_data before;
    before = w.masters[0].redis.data;
    cluster_pass_ms(&w, 3000);
    cluster_lock_on_three(&w);
    w.masters[0].redis.data = before;
    cluster_cut(&w, 0);
    cluster_expect_no_grant_for_s(&w, 57);
}
