/*
 * Masters that lose data and clocks that step: no second grant while the first is valid, and grants
 * again after the quarantine.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/guard/record.h"
#include "tests/e2e/guard_stage.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

/* --- masters that lose data --- */

static void kill_and_restart(struct stage *stage)
{
    for (unsigned i = 0; i < 3; i++)
        master_restart(&stage->masters[i]);
}

static void flush(struct stage *stage)
{
    masters_run(stage->masters, 3, "FLUSHALL");
}

/* Restarts three masters with the snapshots that they saved before the lock was granted. The
 * snapshots include the guard's record. */
static void load_old_snapshot(struct stage *stage)
{
    for (unsigned i = 0; i < 3; i++)
        master_restart(&stage->masters[i]);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(masters_with(&stage->masters[i], 1, "redlockd:node"), 1);
}

static void follow(struct master *follower, const struct master *leader)
{
    struct waiting waiting = waiting_for("a replica to be in sync");
    master_text(follower, "REPLICAOF 127.0.0.1 %d", leader->port);
    while (strstr(master_text(follower, "INFO replication"), "master_link_status:up") == NULL)
        waiting_pause(&waiting);
}

/* Makes three masters replicas of an empty master, and then masters again. Their processes,
 * addresses and connections stay the same, but their data is gone. */
static void fail_over_to_empty_master(struct stage *stage)
{
    struct master empty;
    masters_start(&empty, 1, &stage->sandbox, &(struct master_plan){.over_tcp = true, .first = 5});
    for (unsigned i = 0; i < 3; i++)
        follow(&stage->masters[i], &empty);
    masters_run(stage->masters, 3, "REPLICAOF NO ONE");
    master_kill(&empty);
}

static void step_one_forward(struct stage *stage)
{
    master_step(&stage->masters[0], 60);
}

static void step_two_forward(struct stage *stage)
{
    for (unsigned i = 0; i < 2; i++)
        master_step(&stage->masters[i], 60);
}

static void step_one_back(struct stage *stage)
{
    master_step(&stage->masters[0], -60);
}

static void step_two_back(struct stage *stage)
{
    for (unsigned i = 0; i < 2; i++)
        master_step(&stage->masters[i], -60);
}

static const struct {
    const char *name;
    void (*damage)(struct stage *stage);
    bool on_three; /* grant on three masters only */
} damages[] = {
    {"kill and restart", kill_and_restart, false},
    {"flush", flush, false},
    {"old snapshot", load_old_snapshot, false},
    {"failover", fail_over_to_empty_master, false},
    {"one forward", step_one_forward, true},
    {"two forward", step_two_forward, true},
    {"three forward", guard_step_three_forward, true},
    {"one back", step_one_back, true},
    {"two back", step_two_back, true},
    {"three back", guard_step_three_back, true},
};

TEST_ROWS(no_second_grant_while_the_first_is_valid, damages)
{
    struct stage stage;
    struct guard_second second;
    stage_open(&stage, __func__, &guard_careful);
    guard_open_second(&stage, &second, &guard_careful.daemon);
    if (damages[_i].damage == load_old_snapshot)
        masters_run(stage.masters, 3, "SAVE");
    int64_t deadline_ms =
        damages[_i].on_three ? guard_lock_on_three(&stage) : guard_lock_until(&stage.client);
    damages[_i].damage(&stage);
    if (damages[_i].on_three)
        guard_resume_without_key(&stage);
    guard_expect_grant_after(&second.client, deadline_ms);
    if (damages[_i].damage == step_one_back)
        daemon_wait_log(&stage.daemon, "clock_stepped_back node=a", "by_ms=");
    guard_close_second(&second);
    stage_close(&stage);
}

/* Two of three masters take over the data of their former replicas and become masters again. Their
 * processes, connections and records stay the same, but the lock is gone: the replicas had been
 * detached before the lock was granted. */
TEST(a_failback_with_an_unchanged_run_id_is_detected)
{
    struct stage stage;
    struct guard_second second;
    struct master replicas[2];
    const struct stage_plan three = {.masters = 3, .daemon = guard_careful.daemon};
    stage_open(&stage, __func__, &three);
    masters_start(replicas, 2, &stage.sandbox, &(struct master_plan){.over_tcp = true, .first = 5});
    for (unsigned i = 0; i < 2; i++)
        follow(&replicas[i], &stage.masters[i]);
    masters_run(replicas, 2, "REPLICAOF NO ONE");
    /* Each of the two masters changed its replication id when its replica attached, which costs it
     * its vote for a quarantine. The second daemon sees the changes when it starts, and
     * guard_open_second() waits until the quarantines are over. The first daemon sees the changes
     * with its next heartbeats. */
    guard_open_second(&stage, &second, &guard_careful.daemon);
    stage_wait_nodes(&stage, "vote=yes", 3);
    int64_t deadline_ms = guard_lock_until(&stage.client);
    for (unsigned i = 0; i < 2; i++)
        follow(&stage.masters[i], &replicas[i]);
    masters_run(stage.masters, 2, "REPLICAOF NO ONE");
    ck_assert_uint_eq(masters_with(stage.masters, 2, "redlockd:node"), 2);
    ck_assert_uint_eq(masters_with(stage.masters, 2, "redlock:a"), 0);
    guard_expect_grant_after(&second.client, deadline_ms);
    guard_close_second(&second);
    for (unsigned i = 0; i < 2; i++)
        master_kill(&replicas[i]);
    stage_close(&stage);
}

/* The example of "How to do distributed locking": client 1 acquires on A, B and C while D and E are
 * unreachable. The clock of C jumps forward and the lock expires there. Client 2 acquires on C, D
 * and E. */
TEST(a_forward_clock_jump_does_not_cause_a_second_grant)
{
    struct stage stage;
    struct guard_second second;
    stage_open(&stage, __func__, &guard_careful);
    guard_open_second(&stage, &second, &guard_careful.daemon);
    int64_t deadline_ms = guard_lock_on_three(&stage);
    master_step(&stage.masters[2], 60);
    guard_resume_without_key(&stage);
    guard_expect_grant_after(&second.client, deadline_ms);
    guard_close_second(&second);
    stage_close(&stage);
}

/* --- masters and daemons that must not take part --- */

TEST(a_master_that_may_evict_keys_has_no_vote)
{
    struct stage stage;
    stage_open(&stage, __func__, &guard_patient);
    masters_run(stage.masters, 1, "CONFIG SET maxmemory 100mb");
    masters_run(stage.masters, 1, "CONFIG SET maxmemory-policy volatile-lru");
    stage_wait_nodes(&stage, "vote=no reason=eviction", 1);
    daemon_wait_log(&stage.daemon, "reason=eviction", "set maxmemory-policy noeviction");
    masters_run(stage.masters, 1, "CONFIG SET maxmemory-policy noeviction");
    stage_wait_nodes(&stage, "vote=yes", 5);
    stage_close(&stage);
}

/* The link to a master that refuses writes is up, but the master has no vote. The log says why. */
TEST(a_master_that_refuses_writes_is_logged)
{
    static const struct {
        const char *from;
        const char *reason;
        const char *back;
    } refusals[] = {
        {"CONFIG SET maxmemory 1mb", "oom", "CONFIG SET maxmemory 0"},
        {"CONFIG SET min-replicas-to-write 1", "noreplicas", "CONFIG SET min-replicas-to-write 0"},
        {"ACL SETUSER default -set", "noperm", "ACL SETUSER default +set"},
        {"ACL SETUSER default -evalsha", "noperm", "ACL SETUSER default +evalsha"},
    };
    struct stage stage;
    stage_open(&stage, __func__, &guard_patient);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        masters_run(stage.masters, 1, refusals[i].from);
        /* The log must show the refusal of this row, not that of an earlier row. */
        unsigned times = 1;
        for (size_t k = 0; k < i; k++)
            times += strcmp(refusals[k].reason, refusals[i].reason) == 0;
        daemon_wait_refused(&stage.daemon, 0, refusals[i].reason, times);
        masters_run(stage.masters, 1, refusals[i].back);
        stage_wait_nodes(&stage, "vote=yes", 5);
    }
    stage_close(&stage);
}

TEST(a_replica_has_no_vote)
{
    struct stage stage;
    stage_open(&stage, __func__, &guard_patient);
    masters_run(stage.masters, 1, "REPLICAOF 127.0.0.1 1");
    stage_wait_nodes(&stage, "vote=no reason=replica", 1);
    masters_run(stage.masters, 1, "REPLICAOF NO ONE");
    stage_wait_nodes(&stage, "vote=no reason=failedover", 1);
    stage_close(&stage);
}

TEST(the_daemon_does_not_start_with_a_duplicate_master)
{
    struct stage stage;
    struct master listed[3];
    struct daemon daemon;
    stage_open_masters(&stage, __func__, &(struct stage_plan){.masters = 2, .over_unix = true});
    for (unsigned i = 0; i < 3; i++)
        listed[i] = stage.masters[i == 2 ? 1 : i];
    /* The same master is listed under another address, which makes the configuration look valid. */
    sandbox_path(&stage.sandbox, "alias", listed[2].socket);
    ck_assert_int_eq(symlink(stage.masters[1].socket, listed[2].socket), 0);
    daemon_prepare(&daemon, &stage.sandbox, listed, 3, &(struct daemon_plan){0});
    ck_assert_int_eq(daemon_refuses(&daemon), 1);
    daemon_wait_log(&daemon, "start_failed node=c", "same_as=b advice=\"list each master once\"");
    stage_close_masters(&stage);
}

/* The address of master e becomes another name of master b. The daemon continues with four votes of
 * five. */
TEST(a_master_that_becomes_a_duplicate_costs_one_vote)
{
    struct stage stage;
    stage_open(&stage, __func__, &guard_patient);
    master_kill(&stage.masters[4]);
    unlink(stage.masters[4].socket);
    ck_assert_int_eq(symlink(stage.masters[1].socket, stage.masters[4].socket), 0);
    stage_wait_nodes(&stage, "vote=no reason=duplicate", 1);
    daemon_wait_log(&stage.daemon, "node_without_vote node=e", "same_as=b");
    client_lock(&stage.client, "a", "10s");
    stage_close(&stage);
}

/* The record is written even without free memory: a later daemon has to learn of the loss. */
TEST(data_loss_is_recorded_on_a_master_without_memory)
{
    struct stage stage;
    struct master *master;
    stage_open(&stage, __func__, &guard_patient);
    master = &stage.masters[0];
    master_text(master, "CONFIG SET maxmemory 1");
    master_text(master, "DEL " RECORD_KEY);
    daemon_wait_log(&stage.daemon, "node=a reason=flushed", "for_ms=");
    struct waiting waiting = waiting_for("the record");
    while (master_text(master, "GET " RECORD_KEY) == NULL)
        waiting_pause(&waiting);
    ck_assert_ptr_nonnull(strstr(master_text(master, "GET " RECORD_KEY), " why=flushed "));
    stage_close(&stage);
}

TEST(daemons_of_another_set_get_no_vote)
{
    struct stage stage;
    struct stage_plan plan = guard_patient;
    struct daemon other;
    struct client client;
    plan.daemon.node_timeout_ms = GUARD_SLOW_MS;
    stage_open(&stage, __func__, &plan);
    client_lock(&stage.client, "held", "30s");
    stage_wait_key(&stage, "redlock:held", 5);
    static const struct daemon_plan plans[] = {{.name = "nodes"},
                                               {.name = "max", .locks = ", max_ttl: 2s"},
                                               {.name = "r", .locks = ", clock_drift_rate: 2%"},
                                               {.name = "f", .locks = ", fence_ttl: 2h"}};
    for (unsigned i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        daemon_prepare(&other, &stage.sandbox, stage.masters, i == 0 ? 3 : 5, &plans[i]);
        daemon_start(&other, 0);
        daemon_wait_listening(&other);
        daemon_connect(&other, &client);
        client_wait_count(&client, "NODES", "vote=no reason=otherset", i == 0 ? 3 : 5);
        client_expect_match(&client, "NOQUORUM 0/[35] need=[23] a:otherset .*", "LOCK a 1s");
        /* The daemon sends a release to all masters, even to those without a vote. This UNLOCK has
         * a wrong token, so the lock must keep its TTL, even if the TTL exceeds the max_ttl of this
         * daemon. */
        client_expect_match(&client, "NOQUORUM .*otherset.*", "UNLOCK held %040d", 0);
        for (unsigned node = 0; node < 5; node++)
            ck_assert_int_gt(master_integer(&stage.masters[node], "PTTL redlock:held"), 20000);
        client_close(&client);
        daemon_stop(&other);
        daemon_wait_log(&other, "node=a reason=otherset", "master_set=");
    }
    ck_assert_uint_eq(client_count(&stage.client, "NODES", "vote=yes"), 5);
    stage_close(&stage);
}

/* The second daemon has another database number for three of the five names. These names are leased
 * to the databases of the first daemon. So the second daemon gets no vote under these names, even
 * after the quarantine of its databases, which are new. */
TEST(names_with_another_database_are_reported_as_repointed)
{
    struct stage stage;
    struct stage_plan plan = guard_careful;
    struct daemon_plan second = guard_careful.daemon;
    struct daemon other;
    struct client client;
    plan.over_unix = false;
    second.name = "moved";
    stage_open(&stage, __func__, &plan);
    struct master moved[5];
    memcpy(moved, stage.masters, sizeof(moved));
    moved[0].database = moved[1].database = moved[2].database = 1;
    daemon_prepare(&other, &stage.sandbox, moved, 5, &second);
    daemon_start(&other, 0);
    daemon_wait_up(&other, 2);
    daemon_connect(&other, &client);
    client_wait_count(&client, "NODES", "vote=no reason=repointed", 3);
    client_expect_match(&client, "NOQUORUM [0-2]/5 need=3 a:repointed .*", "LOCK a 1s");
    /* The first daemon is granted a lock and stops, and then the two common masters lose the leases
     * together with the lock. */
    int64_t deadline_ms = guard_lock_until(&stage.client);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGSTOP), 0);
    masters_run(stage.masters + 3, 2, "FLUSHALL");
    struct waiting waiting = waiting_for("the lock to end");
    while (waiting_clock_ms() < deadline_ms) {
        client_expect_match(&client, "NOQUORUM .*", "LOCK a 1s");
        waiting_pause(&waiting);
    }
    ck_assert_int_eq(kill(stage.daemon.pid, SIGCONT), 0);
    client_close(&client);
    daemon_stop(&other);
    stage_close(&stage);
}

/* --- tokens that have ended --- */

TEST(an_ended_token_stays_gone)
{
    struct stage stage;
    stage_open(&stage, __func__, &guard_careful);
    struct grant grant = client_lock(&stage.client, "a", "1s");
    /* The key must be gone from all masters, since EXTEND prolongs it on each master that still has
     * it. */
    struct waiting waiting = waiting_for("the lock to end on all masters");
    while (masters_with(stage.masters, 5, "redlock:a") > 0)
        waiting_pause(&waiting);
    client_expect(&stage.client, "GONE", "EXTEND a %s 4s", grant.token);
    /* Two masters have the key again, as after a SET that arrived late. EXTEND must not restore the
     * lock from them, not even with the help of a third master that has lost its data. */
    for (unsigned i = 0; i < 2; i++)
        master_text(&stage.masters[i], "SET redlock:a %s PX 60000", grant.token);
    client_expect(&stage.client, "GONE", "EXTEND a %s 4s", grant.token);
    masters_run(&stage.masters[4], 1, "FLUSHALL");
    daemon_wait_refused(&stage.daemon, 4, "flushed", 1);
    client_expect_match(&stage.client, "GONE|NOQUORUM .*", "EXTEND a %s 4s", grant.token);
    stage_wait_nodes(&stage, "vote=yes", 5);
    client_expect(&stage.client, "GONE", "EXTEND a %s 4s", grant.token);
    ck_assert_uint_eq(masters_with(stage.masters, 5, "redlock:a"), 2);
    stage_close(&stage);
}
