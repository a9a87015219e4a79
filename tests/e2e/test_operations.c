/*
 * Carries out the procedures of docs/operations/.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/redis.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};
static const struct daemon_plan brief = {.locks = ", max_ttl: 1s"};

static int run(const struct daemon *daemon, const char *first, const char *second)
{
    return daemon_run(daemon, (const char *[]){first, second, NULL});
}

static void serve(struct stage *stage, const struct daemon_plan *plan)
{
    stage_start_daemon(stage, &stage->daemon, plan);
    daemon_connect(&stage->daemon, &stage->client);
}

static void stop_serving(struct stage *stage)
{
    client_close(&stage->client);
    daemon_stop(&stage->daemon);
}

/* Reads the set id from the record of a master. */
static void read_set_id(struct master *master, char *id)
{
    const char *set = strstr(master_text(master, "GET redlockd:node"), "set=");
    ck_assert_ptr_nonnull(set);
    snprintf(id, 17, "%.16s", set + 4);
}

/* --- first start --- */

TEST(bootstrap_allows_grants_at_once)
{
    struct stage stage;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    ck_assert_int_eq(run(&stage.daemon, "--bootstrap", NULL), 0);
    daemon_wait_log(&stage.daemon, "task_done", "task=bootstrap");
    serve(&stage, &three.daemon);
    client_lock(&stage.client, "a", "10s");
    stage_close(&stage);
}

/* Deletes the name leases of a master and returns their number. */
static const char *delete_leases(struct master *master)
{
    return master_text(master, "EVAL %s 0",
                       "local names = redis.call('KEYS', 'redlockd:name:*')"
                       "for _, name in ipairs(names) do redis.call('DEL', name) end "
                       "return tostring(#names)");
}

TEST(bootstrap_is_refused_if_any_master_has_a_record)
{
    struct stage stage;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    ck_assert_int_eq(run(&stage.daemon, "--bootstrap", NULL), 0);
    /* Deletes the leases, so that the test can see that a refused bootstrap writes none. */
    for (unsigned i = 0; i < 3; i++)
        delete_leases(&stage.masters[i]);
    ck_assert_int_eq(run(&stage.daemon, "--bootstrap", NULL), 1);
    daemon_wait_log(&stage.daemon, "task_refused", "already has a record");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "reason=unchecked"), 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_str_eq(delete_leases(&stage.masters[i]), "0");
    masters_run(stage.masters, 2, "DEL redlockd:node");
    ck_assert_int_eq(run(&stage.daemon, "--bootstrap", NULL), 1);
    ck_assert_uint_eq(masters_with(stage.masters, 3, "redlockd:node"), 1);
    stage_close_masters(&stage);
}

TEST(bootstrap_is_refused_if_a_master_is_down)
{
    struct stage stage;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    master_kill(&stage.masters[1]);
    ck_assert_int_eq(run(&stage.daemon, "--bootstrap", NULL), 1);
    daemon_wait_log(&stage.daemon, "task_refused", "node=b");
    ck_assert_uint_eq(masters_with(&stage.masters[0], 1, "redlockd:node"), 0);
    ck_assert_uint_eq(masters_with(&stage.masters[2], 1, "redlockd:node"), 0);
    stage_close_masters(&stage);
}

TEST(a_first_start_without_bootstrap_waits_for_max_ttl)
{
    struct stage stage;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &brief);
    daemon_start(&stage.daemon, 0);
    daemon_wait_log(&stage.daemon, "node_without_vote", "reason=new");
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    client_lock(&stage.client, "a", "1s");
    stage_close(&stage);
}

/* --- replacing a master --- */

TEST(a_replaced_server_votes_after_max_ttl)
{
    struct stage stage;
    struct stage_plan plan = three;
    plan.daemon = brief;
    stage_open(&stage, __func__, &plan);
    struct master *old = &stage.masters[1];
    struct master new;
    masters_start(&new, 1, &stage.sandbox, &(struct master_plan){.first = 7});
    master_kill(old);
    unlink(old->socket);
    ck_assert_int_eq(symlink(new.socket, old->socket), 0);
    daemon_wait_refused(&stage.daemon, 1, "restarted", 1);
    struct grant grant = client_lock(&stage.client, "a", "1s");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_nodes(&stage, "vote=yes", 3);
    client_lock(&stage.client, "b", "1s");
    master_kill(&new);
    stage_close(&stage);
}

/* --- masters that keep their data --- */

static const struct stage_plan three_durable = {
    .masters = 3, .over_unix = true, .durable = true, .daemon = {.node_fields = ", durable: true"}};

static void wait_durable(struct stage *stage)
{
    struct waiting waiting = waiting_for("durable records");
    for (unsigned i = 0; i < 3; i++)
        while (strstr(master_text(&stage->masters[i], "GET redlockd:node"), "durable=yes") == NULL)
            waiting_pause(&waiting);
}

/* max_ttl is a minute, longer than this test. */
TEST(durable_masters_vote_immediately_after_a_restart)
{
    struct stage stage;
    stage_open(&stage, __func__, &three_durable);
    wait_durable(&stage);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    for (unsigned i = 0; i < 3; i++)
        master_restart(&stage.masters[i]);
    stage_wait_nodes(&stage, "vote=yes", 3);
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK a 10s");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    client_lock(&stage.client, "a", "10s");
    stage_close(&stage);
}

/* Runs the script in the folder of the masters' files; $n is the number of the master. */
static void run_shell(const struct stage *stage, unsigned master, const char *script)
{
    char command[SANDBOX_FILE + 256];
    snprintf(command, sizeof(command), "cd %s && n=%u && %s", stage->sandbox.dir, master, script);
    ck_assert_int_eq(system(command), 0);
}

/* The number in the master's beats: protocol/heartbeat.lua. */
static long long beats(struct master *master)
{
    return master_integer(master, "EVAL %s 0",
                          "local key = redis.call('KEYS', 'redlockd:beats:*')[1]; "
                          "return tonumber(string.match(redis.call('GET', key), '[0-9]+$'))");
}

/* Two masters start with the files that they had before the lock. */
TEST(durable_masters_with_older_files_have_no_vote)
{
    struct stage stage;
    long long before[2];
    stage_open(&stage, __func__, &three_durable);
    wait_durable(&stage);
    for (unsigned i = 0; i < 2; i++) {
        run_shell(&stage, i, "cp -r master-$n.aof older-$n");
        before[i] = beats(&stage.masters[i]);
    }
    struct waiting waiting = waiting_for("two heartbeats");
    for (unsigned i = 0; i < 2; i++)
        while (beats(&stage.masters[i]) < before[i] + 2)
            waiting_pause(&waiting);
    client_lock(&stage.client, "a", "60s");
    for (unsigned i = 0; i < 2; i++) {
        master_kill(&stage.masters[i]);
        run_shell(&stage, i, "rm -r master-$n.aof && mv older-$n master-$n.aof");
        master_restart(&stage.masters[i]);
    }
    stage_wait_nodes(&stage, "reason=olddata", 2);
    client_expect_match(&stage.client, "NOQUORUM 1/3 .*", "LOCK a 10s");
    stage_close(&stage);
}

/* Waits until each name lease has the signature of one daemon only. Then the signature of the
 * process that ran the bootstrap has expired. */
static void wait_single_daemon(struct stage *stage)
{
    static const char daemons[] =
        "local most = 0; "
        "for _, key in ipairs(redis.call('KEYS', 'redlockd:name:*')) do "
        "    local _, count = string.gsub(redis.call('GET', key), '=', ''); "
        "    most = math.max(most, count) "
        "end "
        "return most";
    struct waiting waiting = waiting_for("the leases of the previous daemon to expire");
    for (unsigned i = 0; i < 3; i++)
        while (master_integer(&stage->masters[i], "EVAL %s 0", daemons) != 1)
            waiting_pause(&waiting);
}

/* With a TTL of 6 s, the daemon begins an extension after 2 s. The hold is lost if no extension
 * succeeds in the 2 s after that. */
TEST(a_hold_survives_a_rolling_restart_of_durable_masters)
{
    struct stage stage;
    struct client holder;
    stage_open(&stage, __func__, &three_durable);
    wait_durable(&stage);
    wait_single_daemon(&stage);
    daemon_connect(&stage.daemon, &holder);
    client_expect_match(&holder, "OK [0-9a-f]{40} .*", "LOCK a 6s HOLD");
    int64_t begun_ms = waiting_clock_ms();
    master_restart(&stage.masters[0]);
    master_restart(&stage.masters[1]);
    stage_wait_nodes(&stage, "vote=yes", 3);
    int64_t took_ms = waiting_clock_ms() - begun_ms;
    stage_wait_count(&stage.client, "renewals", 3);
    while (client_has_line(&holder))
        ck_assert_msg(strncmp(client_read(&holder), "! WARN ", 7) == 0, "%s", holder.line);
    client_expect(&holder, "PONG", "PING");
    printf("two durable masters restarted: all votes were back after %lld ms\n",
           (long long)took_ms);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "reason=repointed"), 0);
    client_close(&holder);
    stage_close(&stage);
}

TEST(masters_without_persistence_are_never_durable)
{
    struct stage stage;
    struct stage_plan plan = three;
    plan.daemon.node_fields = ", durable: true";
    stage_open(&stage, __func__, &plan);
    master_restart(&stage.masters[0]);
    stage_wait_nodes(&stage, "vote=no reason=restarted", 1);
    stage_close(&stage);
}

/* --- changing the list, or max_ttl --- */

/* The set grows from three nodes to five. A daemon of the old set, which the operator forgot to
 * stop, gets no votes. */
TEST(reset_set_changes_the_list_of_nodes)
{
    struct stage stage;
    struct daemon forgotten;
    struct client client;
    char old_id[17];
    char new_id[17];
    const struct daemon_plan second = {.name = "second", .locks = ", max_ttl: 2s"};
    stage_open_masters(&stage, __func__, &(struct stage_plan){.masters = 5, .over_unix = true});
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 5, &brief);
    ck_assert_int_eq(run(&stage.daemon, "--reset-set", "0123456789abcdef"), 1);
    daemon_wait_log(&stage.daemon, "task_refused", "no master of the new list");
    ck_assert_uint_eq(masters_with(stage.masters, 5, "redlockd:node"), 0);

    daemon_prepare(&forgotten, &stage.sandbox, stage.masters, 3, &second);
    daemon_bootstrap(&forgotten);
    daemon_start(&forgotten, 0);
    daemon_wait_up(&forgotten, 3);
    daemon_connect(&forgotten, &client);
    read_set_id(&stage.masters[0], old_id);

    ck_assert_int_eq(run(&stage.daemon, "--reset-set", "0123456789abcdef"), 1);
    daemon_wait_log(&stage.daemon, "task_refused", "neither the old set nor the new one");
    /* The old daemon still runs: the reset is refused and nothing is written. */
    ck_assert_int_eq(run(&stage.daemon, "--reset-set", old_id), 1);
    daemon_wait_log(&stage.daemon, "old_daemon_runs node=a", "CLIENT LIST");
    daemon_wait_log(&stage.daemon, "task_refused task=reset_set",
                    "a daemon of the old set still runs");
    for (unsigned i = 0; i < 3; i++) {
        read_set_id(&stage.masters[i], new_id);
        ck_assert_str_eq(old_id, new_id);
    }
    /* A suspended daemon leaves no new traces on the masters, so --reset-set does not notice it. */
    kill(forgotten.pid, SIGSTOP);
    ck_assert_int_eq(run(&stage.daemon, "--reset-set", old_id), 0);
    for (unsigned i = 0; i < 5; i++) {
        read_set_id(&stage.masters[i], new_id);
        ck_assert_str_ne(old_id, new_id);
    }
    kill(forgotten.pid, SIGCONT);
    client_expect_match(&client, "NOQUORUM .*", "LOCK a 1s");
    client_wait_count(&client, "NODES", "vote=no reason=otherset", 3);
    client_close(&client);
    daemon_stop(&forgotten);

    /* Waits for the quarantine, which lasts for the old max_ttl: it is larger than the new one. */
    serve(&stage, &brief);
    client_lock(&stage.client, "a", "1s");
    stage_close(&stage);
}

TEST(locks_of_the_old_set_are_respected_by_the_new_one)
{
    struct stage stage;
    char old_id[17];
    struct stage_plan plan = three;
    plan.daemon.locks = ", max_ttl: 4s";
    stage_open(&stage, __func__, &plan);
    read_set_id(&stage.masters[0], old_id);
    int64_t sent_ms = waiting_clock_ms();
    struct grant grant = client_lock(&stage.client, "a", "4s");
    int64_t deadline_ms = sent_ms + grant.elapsed_ms + grant.validity_ms;
    stop_serving(&stage);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &brief);
    ck_assert_int_eq(run(&stage.daemon, "--reset-set", old_id), 0);
    daemon_start(&stage.daemon, 0);
    daemon_wait_listening(&stage.daemon);
    daemon_connect(&stage.daemon, &stage.client);
    for (unsigned i = 0; i < 3; i++)
        daemon_wait_refused(&stage.daemon, i, "reset", 1);
    /* The masters also lose their data, so only the quarantine protects the lock of the old set. */
    masters_run(stage.masters, 3, "FLUSHALL");
    struct waiting waiting = waiting_for("a grant");
    while (strncmp(client_ask(&stage.client, "LOCK a 1s"), "OK ", 3) != 0)
        waiting_pause(&waiting);
    ck_assert_int_ge(waiting_clock_ms(), deadline_ms);
    stage_close(&stage);
}

/* --- upgrades --- */

TEST(locks_survive_a_rolling_upgrade_of_the_daemons)
{
    struct stage stage;
    struct daemon second;
    struct client client;
    const struct daemon_plan named = {.name = "second"};
    stage_open(&stage, __func__, &three);
    stage_start_daemon(&stage, &second, &named);
    daemon_connect(&second, &client);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    stop_serving(&stage);
    client_expect_match(&client, "HELD [0-9]+", "LOCK a 10s");
    serve(&stage, &three.daemon);
    client_close(&client);
    daemon_stop(&second);
    client_expect_match(&stage.client, "OK .*", "EXTEND a %s 60s", grant.token);
    stage_start_daemon(&stage, &second, &named);
    daemon_connect(&second, &client);
    client_expect(&client, "OK", "UNLOCK a %s", grant.token);
    client_close(&client);
    daemon_stop(&second);
    stage_close(&stage);
}

/* --- least privilege --- */

/* Reads the ACL line of docs/operations/masters.md and inserts a password. */
static void read_acl(char *line, size_t size)
{
    char text[32768];
    FILE *file = fopen("docs/operations/masters.md", "r");
    ck_assert_ptr_nonnull(file);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[len] = '\0';
    char *begin = strstr(text, "ACL SETUSER redlockd");
    ck_assert_ptr_nonnull(begin);
    char *secret = strstr(begin, ">SECRET");
    ck_assert_ptr_nonnull(secret);
    int before = (int)(secret + 1 - begin);
    const char *rest = secret + strlen(">SECRET");
    snprintf(line, size, "%.*sxyzzy%.*s", before, begin, (int)strcspn(rest, "\n"), rest);
}

/* Returns the compare-and-delete command of the server; NULL: none. */
static const char *native_command(struct stage *stage)
{
    const char *info = master_text(&stage->masters[0], "INFO server");
    enum redis_form form = redis_release_form(info, strlen(info));
    return form == REDIS_DELIFEQ ? "delifeq" : form == REDIS_DELEX ? "delex" : NULL;
}

/* Returns a counter (calls, rejected_calls) of the command on the first master. */
static long native_count(struct stage *stage, const char *command, const char *field)
{
    char name[32];
    snprintf(name, sizeof(name), "cmdstat_%s:", command);
    const char *line = strstr(master_text(&stage->masters[0], "INFO commandstats"), name);
    ck_assert_ptr_nonnull(line);
    /* The line begins with calls=, so strstr() finds that field and not rejected_calls=. */
    const char *at = strstr(line, field);
    ck_assert_ptr_nonnull(at);
    return atol(at + strlen(field));
}

static void unlock_one(struct stage *stage)
{
    struct grant grant = client_lock(&stage->client, "a", "60s");
    client_expect(&stage->client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_no_keys(stage);
}

static void unlock_two(struct client *client)
{
    char lines[256];
    struct grant a = client_lock(client, "a", "1s");
    struct grant b = client_lock(client, "b", "1s");
    snprintf(lines, sizeof(lines), "#a UNLOCK a %s\n#b UNLOCK b %s\n", a.token, b.token);
    client_send(client, lines);
    client_read_match(client, "#[ab] OK");
    client_read_match(client, "#[ab] OK");
}

TEST(the_documented_acl_suffices)
{
    struct stage stage;
    char acl[1024];
    char path[SANDBOX_FILE];
    char fields[256];
    char old_id[17];
    read_acl(acl, sizeof(acl));
    stage_open_masters(&stage, __func__, &three);
    masters_run(stage.masters, 3, acl);
    const char *native = native_command(&stage);
    if (native != NULL) {
        snprintf(acl, sizeof(acl), "ACL SETUSER redlockd +%s", native);
        masters_run(stage.masters, 3, acl);
    }
    sandbox_path(&stage.sandbox, "password", path);
    sandbox_write(path, "xyzzy\n");
    snprintf(fields, sizeof(fields), ", username: redlockd, password_file: %s", path);
    const struct daemon_plan plan = {.node_fields = fields, .locks = ", max_ttl: 1s"};
    const struct daemon_plan longer = {.node_fields = fields, .locks = ", max_ttl: 2s"};
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &plan);
    ck_assert_int_eq(run(&stage.daemon, "--bootstrap", NULL), 0);
    serve(&stage, &plan);
    struct grant grant = client_lock(&stage.client, "a", "1s FENCE");
    client_expect_match(&stage.client, "OK .*", "EXTEND a %s 1s", grant.token);
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK a 1s");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    unlock_two(&stage.client);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "command_refused"), 0);
    /* The ACL also suffices after scripts and data are lost, a connection is lost, and the set
     * changes. */
    masters_run(stage.masters, 3, "SCRIPT FLUSH");
    masters_run(stage.masters, 1, "FLUSHALL");
    masters_run(&stage.masters[1], 1, "CLIENT KILL TYPE normal SKIPME yes");
    stage_wait_nodes(&stage, "vote=no", 1);
    stage_wait_nodes(&stage, "vote=yes", 3);
    client_lock(&stage.client, "a", "1s");
    ck_assert_ptr_nonnull(strstr(master_text(&stage.masters[0], "CLIENT LIST"), "user=redlockd"));
    read_set_id(&stage.masters[0], old_id);
    stop_serving(&stage);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &longer);
    ck_assert_int_eq(run(&stage.daemon, "--reset-set", old_id), 0);
    stage_close_masters(&stage);
}

TEST(a_command_missing_from_the_acl_is_reported)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    masters_run(stage.masters, 1, "ACL SETUSER default -info");
    stage_wait_nodes(&stage, "vote=no reason=noperm", 1);
    daemon_wait_log(&stage.daemon, "node=a reason=noperm meaning=\"NOPERM", "'info'");
    masters_run(stage.masters, 1, "ACL SETUSER default +info");
    stage_wait_nodes(&stage, "vote=yes", 3);
    masters_run(stage.masters, 1, "ACL SETUSER default -evalsha");
    stage_wait_nodes(&stage, "vote=no reason=noperm", 1);
    masters_run(stage.masters, 1, "ACL SETUSER default +evalsha");
    stage_wait_nodes(&stage, "vote=yes", 3);
    stage_close(&stage);
}

/* The native command deletes a key if it has a given value. To a server without such a command,
 * like Redis 7, the daemon must not send one, because the server would count an error. */
TEST(a_single_release_uses_the_native_command)
{
    struct stage stage;
    char acl[64];
    stage_open(&stage, __func__, &three);
    const char *native = native_command(&stage);
    unlock_one(&stage);
    if (native == NULL) {
        ck_assert_ptr_null(
            strstr(master_text(&stage.masters[0], "INFO errorstats"), "errorstat_ERR"));
    } else {
        ck_assert_int_eq(native_count(&stage, native, "calls="), 1);
        ck_assert_int_eq(native_count(&stage, native, "rejected_calls="), 0);
        snprintf(acl, sizeof(acl), "ACL SETUSER default -%s", native);
        masters_run(stage.masters, 1, acl);
        unlock_one(&stage);
        daemon_wait_log(&stage.daemon, "command_refused", native);
        unlock_one(&stage);
        ck_assert_uint_eq(daemon_count_log(&stage.daemon, "command_refused"), 1);
    }
    stage_close(&stage);
}

/* An operator's ACL can be older than the batched releases of redlockd, which need MGET. */
TEST(an_acl_without_mget_still_releases_and_is_logged_once)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    masters_run(stage.masters, 1, "ACL SETUSER default -mget");
    unlock_two(&stage.client);
    daemon_wait_log(&stage.daemon, "command_refused", "reason=noperm");
    unlock_two(&stage.client);
    stage_wait_no_keys(&stage);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "command_refused"), 1);
    stage_close(&stage);
}

/* Without MGET, a daemon cannot see that its hint is there already, or that another daemon's waiter
 * needs the lock to be free for longer. So it leaves none. */
TEST(an_acl_without_mget_costs_the_contention_hint)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    masters_run(stage.masters, 1, "ACL SETUSER default -mget");
    masters_run(stage.masters, 3, "SET redlock:a another-library PX 60000");
    client_expect_match(&stage.client, "HELD .*", "LOCK a 1s WAIT 500ms");
    ck_assert_uint_eq(masters_with(stage.masters, 1, "redlockd:waits:redlock:a"), 0);
    ck_assert_uint_eq(masters_with(&stage.masters[1], 2, "redlockd:waits:redlock:a"), 2);
    stage_close(&stage);
}

static void lock_and_unlock(struct client *client, const char *resource)
{
    struct grant grant = client_lock(client, resource, "60s");
    client_expect(client, "OK", "UNLOCK %s %s", resource, grant.token);
}

/* Without DEL, the guard works and locks are granted: only a release shows the missing right. */
TEST(an_acl_without_del_is_logged_at_the_first_release)
{
    struct stage stage;
    char acl[64];
    stage_open(&stage, __func__, &three);
    const char *native = native_command(&stage);
    snprintf(acl, sizeof(acl), "ACL SETUSER default -del%s%s", native != NULL ? " -" : "",
             native != NULL ? native : "");
    masters_run(stage.masters, 1, acl);
    lock_and_unlock(&stage.client, "a");
    daemon_wait_log(&stage.daemon, "warning command_refused", "node=a reason=noperm");
    lock_and_unlock(&stage.client, "b");
    masters_run(stage.masters, 1, "ACL SETUSER default +del");
    stage_wait_no_keys(&stage);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "command_refused"), 1);
    stage_close(&stage);
}
