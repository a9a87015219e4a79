/*
 * Daemons that start, stop or are faulty while clocks step: no second grant while the first is
 * valid, and no vote lost for nothing.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/guard_stage.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

enum { STEP_SIZE = 64 };

/* --- restarts of daemons --- */

/* The granting daemon is killed, a master with the key steps its clock, the two masters without the
 * key come back, and a new daemon starts: no daemon has observed the step. */
static void expect_unobserved_step_respected(const char *test, bool elsewhere)
{
    struct stage stage;
    struct guard_second fresh;
    struct daemon_plan plan = guard_careful.daemon;
    stage_open(&stage, test, &guard_careful);
    int64_t deadline_ms = guard_lock_on_three(&stage);
    process_kill(stage.daemon.pid);
    stage.daemon.pid = 0;
    master_step(&stage.masters[2], 60);
    guard_resume_without_key(&stage);
    plan.name = "second";
    plan.other_host = elsewhere;
    daemon_prepare(&fresh.daemon, &stage.sandbox, stage.masters, 5, &plan);
    daemon_start(&fresh.daemon, 0);
    daemon_wait_listening(&fresh.daemon);
    daemon_connect(&fresh.daemon, &fresh.client);
    guard_expect_grant_after(&fresh.client, deadline_ms);
    guard_close_second(&fresh);
    unlink(stage.daemon.socket);
    stage_close(&stage);
}

TEST(an_unobserved_step_is_respected_on_the_same_host)
{
    expect_unobserved_step_respected(__func__, false);
}

TEST(an_unobserved_step_is_respected_on_another_host)
{
    expect_unobserved_step_respected(__func__, true);
}

/* The id of the last step that was announced on the master. */
static void announced_step(struct master *master, char step[STEP_SIZE])
{
    snprintf(step, STEP_SIZE, "%s",
             master_text(master, "EVAL %s 0",
                         "local keys = redis.call('KEYS', 'redlockd:step:*')"
                         "return keys[1] and redis.call('GET', keys[1]) or 'none'"));
}

/* The clocks of a, b and c step forward. When the first daemon has announced that, they step back,
 * the first daemon is killed, and d and e are resumed without the key. */
static void step_and_back_and_end(struct stage *stage)
{
    char before[3][STEP_SIZE];
    char now[STEP_SIZE];
    for (unsigned i = 0; i < 3; i++)
        announced_step(&stage->masters[i], before[i]);
    guard_step_three_forward(stage);
    for (unsigned i = 0; i < 3; i++) {
        daemon_wait_refused(&stage->daemon, i, "ownclock", 1);
        struct waiting waiting = waiting_for("the step to be announced");
        for (announced_step(&stage->masters[i], now); strcmp(now, before[i]) == 0;
             announced_step(&stage->masters[i], now))
            waiting_pause(&waiting);
    }
    guard_step_three_back(stage);
    process_kill(stage->daemon.pid);
    stage->daemon.pid = 0;
    guard_resume_without_key(stage);
}

/* Before the steps, a daemon on another host leaves its clock entries on the masters. After the
 * step back, these entries fit the clocks again, although the key may have expired in between. The
 * announcement of the steps must make the entries void. */
TEST(a_step_and_back_is_announced_to_another_host)
{
    struct stage stage;
    struct guard_second second;
    const struct daemon_plan elsewhere = {.locks = guard_careful.daemon.locks, .other_host = true};
    stage_open(&stage, __func__, &guard_careful);
    guard_open_second(&stage, &second, &elsewhere);
    stage_wait_nodes(&stage, "vote=yes", 5);
    guard_close_second(&second);
    int64_t deadline_ms = guard_lock_on_three(&stage);
    step_and_back_and_end(&stage);
    daemon_start(&second.daemon, 0);
    daemon_wait_listening(&second.daemon);
    daemon_connect(&second.daemon, &second.client);
    guard_expect_grant_after(&second.client, deadline_ms);
    guard_close_second(&second);
    unlink(stage.daemon.socket);
    stage_close(&stage);
}

/* The second daemon is stopped before three masters have answered its probe. It reads their replies
 * when it continues. */
static void stop_with_a_probe_under_way(struct stage *stage, struct guard_second *second)
{
    struct client requester;
    daemon_connect(&second->daemon, &requester);
    stage_stop_masters(stage, 0, 2);
    client_send(&requester, "LOCK b 1s\n");
    client_wait_count(&second->client, "NODES", "unanswered=0", 2);
    kill(second->daemon.pid, SIGSTOP);
    client_close(&requester);
    stage_continue_masters(stage, 0, 2);
}

/* The second daemon is stopped between two probes (0) or during a probe (1). It is stopped for
 * more than two heartbeat intervals. After such a gap between its samples of a clock, it must not
 * trust the clock if a step was announced meanwhile. */
TEST_LOOP(a_step_and_back_is_announced_to_a_stopped_daemon, 0, 2)
{
    struct stage stage;
    struct guard_second second;
    stage_open(&stage, __func__, &guard_careful);
    guard_open_second(&stage, &second, &guard_careful.daemon);
    if (_i == 0)
        kill(second.daemon.pid, SIGSTOP);
    else
        stop_with_a_probe_under_way(&stage, &second);
    int64_t until_ms = waiting_clock_ms() + 2100;
    int64_t deadline_ms = guard_lock_on_three(&stage);
    step_and_back_and_end(&stage);
    struct waiting waiting = waiting_for("two seconds to pass");
    while (waiting_clock_ms() < until_ms)
        waiting_pause(&waiting);
    kill(second.daemon.pid, SIGCONT);
    guard_expect_grant_after(&second.client, deadline_ms);
    guard_close_second(&second);
    unlink(stage.daemon.socket);
    stage_close(&stage);
}

/* max_ttl is a minute. The daemon can trust the masters' clocks sooner only through the entries
 * that the previous process left on the masters. */
TEST(a_daemon_restarted_on_its_host_grants_at_once)
{
    struct stage stage;
    stage_open(&stage, __func__, &guard_patient);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    stage_start_daemon(&stage, &stage.daemon, &guard_patient.daemon);
    daemon_connect(&stage.daemon, &stage.client);
    client_lock(&stage.client, "a", "10s");
    stage_close(&stage);
}

TEST(a_daemon_on_a_new_host_grants_next_to_a_live_daemon)
{
    struct stage stage;
    struct guard_second second;
    const struct daemon_plan elsewhere = {.other_host = true};
    stage_open(&stage, __func__, &guard_patient);
    guard_open_second(&stage, &second, &elsewhere);
    client_lock(&second.client, "a", "10s");
    guard_close_second(&second);
    stage_close(&stage);
}

TEST(a_daemon_on_a_new_host_waits_if_no_daemon_runs)
{
    struct stage stage;
    struct guard_second second;
    struct daemon_plan plan = {.name = "second", .other_host = true};
    stage_open(&stage, __func__, &guard_patient);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_prepare(&second.daemon, &stage.sandbox, stage.masters, 5, &plan);
    daemon_start(&second.daemon, 0);
    daemon_wait_listening(&second.daemon);
    daemon_connect(&second.daemon, &stage.client);
    stage_wait_nodes(&stage, "reason=clockunproven", 5);
    client_expect_match(&stage.client, "NOQUORUM 0/5 need=3 a:clockunproven .*", "LOCK a 10s");
    client_close(&stage.client);
    daemon_stop(&second.daemon);
    stage_close_masters(&stage);
}

/* --- a faulty daemon --- */

static void save_records(struct stage *stage, char records[5][512])
{
    for (unsigned i = 0; i < 5; i++)
        snprintf(records[i], sizeof(records[i]), "%s",
                 master_text(&stage->masters[i], "GET redlockd:node"));
}

TEST(a_stopped_and_stepped_daemon_costs_no_vote)
{
    struct stage stage;
    struct guard_second second;
    struct clock_file clock;
    struct stage_plan plan = guard_patient;
    char before[5][512];
    char after[5][512];
    plan.daemon.node_timeout_ms = GUARD_SLOW_MS;
    stage_open(&stage, __func__, &plan);
    plan.daemon.clock_ahead_s = 1;
    guard_open_second(&stage, &second, &plan.daemon);
    clock_open(&clock, &stage.sandbox, "daemon");
    save_records(&stage, before);
    /* The second daemon is stopped for three seconds. Then it is resumed and stopped in turn. Its
     * wall clock steps between an hour behind and an hour ahead, each time while it is stopped.
     * All this must cost the first daemon no vote, and must not change the masters' records. */
    int64_t until_ms = waiting_clock_ms() + 3000;
    kill(second.daemon.pid, SIGSTOP);
    struct waiting waiting = waiting_for("three seconds to pass");
    while (waiting_clock_ms() < until_ms) {
        ck_assert_uint_eq(client_count(&stage.client, "NODES", "vote=yes"), 5);
        waiting_pause(&waiting);
    }
    for (unsigned i = 0; i < 100; i++) {
        clock_set(&clock, i % 4 < 2 ? -3600 : 3600);
        kill(second.daemon.pid, i % 2 == 0 ? SIGCONT : SIGSTOP);
        ck_assert_uint_eq(client_count(&stage.client, "NODES", "vote=yes"), 5);
        waiting_pause(&waiting);
    }
    kill(second.daemon.pid, SIGCONT);
    client_wait_count(&second.client, "NODES", "vote=yes", 5);
    client_lock(&second.client, "a", "10s");
    save_records(&stage, after);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(before[i], after[i]);
    guard_close_second(&second);
    stage_close(&stage);
}
