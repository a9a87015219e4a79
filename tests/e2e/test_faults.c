/*
 * Masters that are down, hung, restarted or flushed, or that refuse commands.
 */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan five = {.masters = 5};
static const struct stage_plan five_on_unix = {.masters = 5, .over_unix = true};
/* With a short max_ttl, masters that have lost their data soon vote again. */
static const struct stage_plan five_brief = {
    .masters = 5, .over_unix = true, .daemon = {.locks = ", max_ttl: 1s"}};

/* --- failure of a minority and of a majority --- */

TEST(a_killed_and_stopped_minority_costs_no_grant)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    master_kill(&stage.masters[3]);
    master_stop(&stage.masters[4]);
    for (unsigned i = 0; i < 50; i++) {
        struct grant grant = client_lock(&stage.client, "a", "10s");
        client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    }
    stage_close(&stage);
}

/* E answers the greeting of each connection, but no heartbeat. */
TEST(a_master_that_pauses_writes_takes_no_votes_from_the_others)
{
    struct stage stage;
    unsigned drops = 0;
    stage_open(&stage, __func__, &five_on_unix);
    masters_run(&stage.masters[4], 1, "CLIENT PAUSE 600000 WRITE");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_listening(&stage.daemon);
    daemon_connect(&stage.daemon, &stage.client);
    stage_wait_nodes(&stage, "reason=hung", 1);
    struct waiting waiting = waiting_for("two more connections to E");
    for (bool was_hung = true; drops < 2; waiting_pause(&waiting)) {
        bool hung = client_count(&stage.client, "NODES", "reason=hung") > 0;
        drops += hung && !was_hung;
        was_hung = hung;
        ck_assert_uint_le(client_count(&stage.client, "NODES", "reason=unchecked"), 1);
    }
    masters_run(&stage.masters[4], 1, "CLIENT UNPAUSE");
    stage_close(&stage);
}

TEST(noquorum_names_each_missing_master)
{
    struct stage stage;
    const char *expected = "NOQUORUM 2/5 need=3 b:refused d:(timeout|suspect|hung) "
                           "e:(timeout|suspect|hung)";
    stage_open(&stage, __func__, &five);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    master_kill(&stage.masters[1]);
    stage_stop_masters(&stage, 3, 4);
    stage_wait_nodes(&stage, "reason=refused", 1);
    client_expect_match(&stage.client, expected, "LOCK b 10s");
    client_expect_match(&stage.client, expected, "STATUS b");
    client_expect_match(&stage.client, expected, "EXTEND a %s 60s", grant.token);
    client_expect_match(&stage.client, expected, "UNLOCK a %s", grant.token);
    stage_close(&stage);
}

TEST(a_killed_majority_causes_noquorum_until_restarted)
{
    struct stage stage;
    stage_open(&stage, __func__, &five_brief);
    for (unsigned i = 0; i < 3; i++)
        master_kill(&stage.masters[i]);
    client_expect_match(&stage.client,
                        "NOQUORUM 2/5 need=3 a:(refused|disconnected|timeout) "
                        "b:(refused|disconnected|timeout) c:(refused|disconnected|timeout)",
                        "LOCK a 1s");
    master_restart(&stage.masters[1]);
    stage_wait_nodes(&stage, "vote=yes", 3);
    client_lock(&stage.client, "a", "1s");
    stage_close(&stage);
}

TEST(restarted_masters_serve_again)
{
    struct stage stage;
    stage_open(&stage, __func__, &five_brief);
    for (unsigned i = 0; i < 5; i++)
        master_restart(&stage.masters[i]);
    stage_wait_nodes(&stage, "vote=yes", 5);
    /* The restarted masters have lost the scripts too, so the daemon has to load them again. */
    struct grant grant = client_lock(&stage.client, "a", "1s");
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_close(&stage);
}

TEST(flushed_scripts_are_reloaded_unnoticed)
{
    struct stage stage;
    stage_open(&stage, __func__, &five_on_unix);
    struct grant grant = client_lock(&stage.client, "a", "10s");
    masters_run(stage.masters, 5, "SCRIPT FLUSH");
    client_expect_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+", "EXTEND a %s 20s",
                        grant.token);
    masters_run(stage.masters, 5, "SCRIPT FLUSH");
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    masters_run(stage.masters, 5, "SCRIPT FLUSH");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

TEST(flushing_the_masters_ends_a_lock)
{
    struct stage stage;
    stage_open(&stage, __func__, &five_brief);
    struct grant grant = client_lock(&stage.client, "a", "1s");
    /* This reply shows that no SET is in flight any more. */
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    masters_run(stage.masters, 5, "FLUSHALL");
    /* A flushed master cannot know whether another client had the lock, so the daemon replies GONE
     * to EXTEND only when the masters vote again. */
    const char *forgotten = "NOQUORUM 0/5 need=3 a:flushed b:flushed c:flushed d:flushed e:flushed";
    client_expect_match(&stage.client, "NOQUORUM [0-2]/5 .*flushed.*", "EXTEND a %s 1s",
                        grant.token);
    stage_wait_nodes(&stage, "reason=flushed", 5);
    client_expect(&stage.client, forgotten, "EXTEND a %s 1s", grant.token);
    client_expect(&stage.client, forgotten, "STATUS a");
    client_expect_match(&stage.client, "(NOQUORUM .*flushed.*|GONE)", "UNLOCK a %s", grant.token);
    stage_wait_nodes(&stage, "vote=yes", 5);
    client_expect(&stage.client, "GONE", "EXTEND a %s 1s", grant.token);
    client_expect(&stage.client, "GONE", "UNLOCK a %s", grant.token);
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}

/* The second daemon has the first one as its node c, which does not speak RESP. */
TEST(a_node_that_is_not_redis_is_reported)
{
    struct stage stage;
    struct daemon second;
    struct client client;
    struct master nodes[3];
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3, .daemon = {.tcp_host = "127.0.0.1"}});
    for (unsigned i = 0; i < 3; i++)
        nodes[i] = stage.masters[i];
    nodes[2].port = stage.daemon.port;
    daemon_prepare(&second, &stage.sandbox, nodes, 3, &(struct daemon_plan){.name = "second"});
    daemon_start(&second, 0);
    daemon_wait_up(&second, 2);
    daemon_connect(&second, &client);
    daemon_wait_log(&second, "node=c", "reason=garbage");
    client_lock(&client, "a", "10s");
    client_close(&client);
    daemon_stop(&second);
    stage_close(&stage);
}

/* --- keys on a master that was hung --- */

/* Waits until the masters have no other key than this one. */
static void wait_only_key(struct stage *stage, const char *key)
{
    struct waiting waiting = waiting_for("all other keys to be deleted");
    while (masters_keys(stage->masters, 5) != masters_with(stage->masters, 5, key))
        waiting_pause(&waiting);
}

/* The lock that was held during the fault must have survived; it is released last. */
static void expect_lock_kept(struct stage *stage, const struct grant *kept)
{
    wait_only_key(stage, "redlock:kept");
    ck_assert_uint_ge(masters_with(stage->masters, 5, "redlock:kept"), 3);
    client_expect_match(&stage->client, "HELD [0-9]+", "STATUS kept");
    client_expect_match(&stage->client, "OK [0-9a-f]{40} [0-9]+ [0-9]+", "EXTEND kept %s 60s",
                        kept->token);
    client_expect(&stage->client, "OK", "UNLOCK kept %s", kept->token);
    stage_wait_no_keys(stage);
}

static void lock_and_unlock(struct client *client, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        char resource[16];
        snprintf(resource, sizeof(resource), "r%u", i);
        struct grant grant = client_lock(client, resource, "60s");
        client_expect(client, "OK", "UNLOCK %s %s", resource, grant.token);
    }
}

static void expect_failed_locks(struct client *client, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        client_expect_match(client, "NOQUORUM .*", "LOCK f%u 60s", i);
}

TEST(released_locks_leave_no_keys_on_a_resumed_master)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    master_stop(&stage.masters[4]);
    struct grant kept = client_lock(&stage.client, "kept", "60s");
    lock_and_unlock(&stage.client, 20);
    master_continue(&stage.masters[4]);
    expect_lock_kept(&stage, &kept);
    stage_close(&stage);
}

TEST(failed_locks_leave_no_keys_on_resumed_masters)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    struct grant kept = client_lock(&stage.client, "kept", "60s");
    stage_stop_masters(&stage, 2, 4);
    expect_failed_locks(&stage.client, 5);
    stage_continue_masters(&stage, 2, 4);
    stage_wait_nodes(&stage, "vote=yes", 5);
    expect_lock_kept(&stage, &kept);
    stage_close(&stage);
}

/* The masters are stopped until the daemon closes the links (over unix sockets in loop index 1).
 * The daemon then does not know whether the masters will execute the commands that it has sent. */
TEST_LOOP(a_long_stop_leaves_no_keys_behind, 0, 2)
{
    const struct stage_plan plan = {
        .masters = 5, .over_unix = _i == 1, .daemon = {.node_timeout_ms = 500}};
    struct stage stage;
    stage_open(&stage, __func__, &plan);
    struct grant kept = client_lock(&stage.client, "kept", "60s");
    master_stop(&stage.masters[4]);
    lock_and_unlock(&stage.client, 5);
    stage_stop_masters(&stage, 2, 3);
    expect_failed_locks(&stage.client, 5);
    stage_wait_nodes(&stage, "reason=hung", 3);
    expect_failed_locks(&stage.client, 2);
    stage_continue_masters(&stage, 2, 4);
    stage_wait_nodes(&stage, "vote=yes", 5);
    expect_lock_kept(&stage, &kept);
    stage_close(&stage);
}

TEST(an_unlock_without_a_quorum_is_completed_later)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    stage_stop_masters(&stage, 0, 2);
    client_expect_match(&stage.client, "NOQUORUM .*", "UNLOCK a %s", grant.token);
    stage_continue_masters(&stage, 0, 2);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

/* A daemon keeps its pending releases in memory only. The master keeps its data, so the key of the
 * released lock stays until its TTL ends. A daemon sends pending releases before it writes to the
 * record that the master has restarted. */
TEST(pending_releases_end_with_their_daemon)
{
    struct stage stage;
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3, .durable = true});
    struct grant grant = client_lock(&stage.client, "a", "60s");
    stage_wait_key(&stage, "redlock:a", 3);
    master_kill(&stage.masters[2]);
    stage_wait_nodes(&stage, "state=up", 2);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_nodes(&stage, " pending_releases=1 ", 1);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_listening(&stage.daemon);
    daemon_connect(&stage.daemon, &stage.client);
    master_restart(&stage.masters[2]);
    struct waiting waiting = waiting_for("the record of the restart");
    while (strstr(master_text(&stage.masters[2], "GET redlockd:node"), "why=restarted") == NULL)
        waiting_pause(&waiting);
    ck_assert_uint_eq(masters_with(stage.masters, 3, "redlock:a"), 1);
    stage_close(&stage);
}

/* --- masters that refuse commands --- */

struct refusal {
    const char *cause[3];
    const char *reason;
    const char *cure;
};

static const struct refusal refusals[] = {
    /* The reason depends on whether the request or the guard finds the replica first. */
    {{"REPLICAOF 127.0.0.1 1"}, "(readonly|replica)", "REPLICAOF NO ONE"},
    {{"CONFIG SET replica-read-only no", "CONFIG SET replica-serve-stale-data no",
      "REPLICAOF 127.0.0.1 1"},
     "masterdown",
     "REPLICAOF NO ONE"},
    {{"CONFIG SET maxmemory 1"}, "oom", "CONFIG SET maxmemory 0"},
    {{"CONFIG SET min-replicas-to-write 1"}, "noreplicas", "CONFIG SET min-replicas-to-write 0"},
    {{"ACL SETUSER default -set"}, "noperm", "ACL SETUSER default +set"},
};

TEST_ROWS(noquorum_names_the_error_of_each_refusing_master, refusals)
{
    struct stage stage;
    char expected[128];
    const struct refusal *refusal = &refusals[_i];
    stage_open(&stage, __func__, &five_brief);
    for (unsigned i = 0; i < 3 && refusal->cause[i] != NULL; i++)
        masters_run(stage.masters, 3, refusal->cause[i]);
    snprintf(expected, sizeof(expected), "NOQUORUM 2/5 need=3 a:%s b:%s c:%s", refusal->reason,
             refusal->reason, refusal->reason);
    client_expect_match(&stage.client, expected, "LOCK a 1s");
    masters_run(stage.masters, 3, refusal->cure);
    stage_wait_nodes(&stage, "vote=yes", 5);
    /* The LOCK was undone on the masters that did not refuse it. */
    stage_wait_no_keys(&stage);
    client_lock(&stage.client, "a", "1s");
    stage_close(&stage);
}

TEST(a_refusing_minority_costs_no_grant)
{
    struct stage stage;
    stage_open(&stage, __func__, &five_on_unix);
    masters_run(&stage.masters[0], 1, "REPLICAOF 127.0.0.1 1");
    masters_run(&stage.masters[1], 1, "CONFIG SET maxmemory 1");
    for (unsigned i = 0; i < 10; i++) {
        struct grant grant = client_lock(&stage.client, "a", "10s");
        client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    }
    stage_close(&stage);
}

/* --- passwords --- */

enum { SECRET_YAML = 256 };

/* Opens masters and sends them the command server_config, after which they require a password.
 * Opens a daemon with the given password (NULL: none) and waits until `up` masters vote. */
static void open_with_password(struct stage *stage, const char *test, const char *server_config,
                               const char *username, const char *password, unsigned up)
{
    char path[SANDBOX_FILE];
    char fields[SECRET_YAML] = "";
    stage_open_masters(stage, test, &(struct stage_plan){.masters = 3, .over_unix = true});
    masters_run(stage->masters, 3, server_config);
    sandbox_path(&stage->sandbox, "password", path);
    if (password != NULL) {
        sandbox_write(path, password);
        snprintf(fields, sizeof(fields), ", password_file: %s%s%s", path,
                 username != NULL ? ", username: " : "", username != NULL ? username : "");
    }
    daemon_prepare(&stage->daemon, &stage->sandbox, stage->masters, 3,
                   &(struct daemon_plan){.node_fields = fields});
    if (up > 0)
        daemon_bootstrap(&stage->daemon);
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, up);
    daemon_connect(&stage->daemon, &stage->client);
}

TEST(a_missing_password_is_reported)
{
    struct stage stage;
    open_with_password(&stage, __func__, "CONFIG SET requirepass secret", NULL, NULL, 0);
    stage_wait_nodes(&stage, "reason=noauth", 3);
    client_expect(&stage.client, "NOQUORUM 0/3 need=2 a:noauth b:noauth c:noauth", "LOCK a 1s");
    stage_close(&stage);
}

TEST(a_wrong_password_is_reported_but_not_logged)
{
    struct stage stage;
    open_with_password(&stage, __func__, "CONFIG SET requirepass secret", NULL, "mistaken\n", 0);
    stage_wait_nodes(&stage, "reason=wrongpass", 3);
    client_expect(&stage.client, "NOQUORUM 0/3 need=2 a:wrongpass b:wrongpass c:wrongpass",
                  "LOCK a 1s");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "mistaken"), 0);
    stage_close(&stage);
}

TEST(the_right_password_is_accepted)
{
    struct stage stage;
    open_with_password(&stage, __func__, "CONFIG SET requirepass secret", NULL, "secret\n", 3);
    client_lock(&stage.client, "a", "10s");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "secret"), 0);
    stage_close(&stage);
}

TEST(the_right_username_is_accepted)
{
    struct stage stage;
    open_with_password(&stage, __func__, "ACL SETUSER app on >secret ~* &* +@all", "app", "secret",
                       3);
    client_lock(&stage.client, "a", "10s");
    ck_assert_ptr_nonnull(strstr(master_text(&stage.masters[0], "CLIENT LIST"), "user=app"));
    stage_close(&stage);
}

/* After a reconnect, the daemon ends its previous connection to the master with CLIENT KILL, for
 * which it has to know its CLIENT ID. Otherwise the master could still execute a command that was
 * left on the previous connection. */
TEST(masters_that_refuse_client_kill_have_no_vote)
{
    static const char *const missing[] = {"client|kill", "client|id"};
    for (unsigned i = 0; i < 2; i++) {
        struct stage stage;
        char acl[128];
        snprintf(acl, sizeof(acl), "ACL SETUSER app on >secret ~* &* +@all -%s", missing[i]);
        open_with_password(&stage, __func__, acl, "app", "secret", 0);
        stage_wait_nodes(&stage, "reason=noperm", 3);
        masters_run(stage.masters, 3, "ACL SETUSER app +@all");
        stage_wait_nodes(&stage, "state=up", 3);
        stage_close(&stage);
    }
}
