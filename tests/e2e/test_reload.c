/*
 * SIGHUP: the daemon reads its configuration again. Either all of the new configuration takes
 * effect, or nothing changes.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};

/* --- helpers --- */

static void expect_reloaded(const struct daemon *daemon, const char *changed)
{
    char line[256];
    snprintf(line, sizeof(line), "changed=%s", changed);
    daemon_reload(daemon, "reloaded");
    daemon_wait_log(daemon, "reloaded", line);
}

/* Expects that the reload is refused and that the daemon still serves. */
static void expect_refused(struct stage *stage, const char *event, const char *text)
{
    daemon_reload(&stage->daemon, "reload_refused");
    daemon_wait_log(&stage->daemon, event, text);
    ck_assert_uint_eq(daemon_count_log(&stage->daemon, " reloaded "), 0);
    client_expect(&stage->client, "PONG", "PING");
}

/* --- settings --- */

TEST(an_unchanged_file_changes_nothing)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    expect_reloaded(&stage.daemon, "nothing");
    expect_reloaded(&stage.daemon, "nothing");
    client_lock(&stage.client, "a", "10s");
    stage_close(&stage);
}

TEST(log_settings_are_reloaded)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    daemon_edit(&stage.daemon, "level: debug", "level: error, format: json");
    daemon_reload(&stage.daemon, "reloaded");
    daemon_wait_log(&stage.daemon, "reloaded", "\"changed\":\"log.level, log.format\"");
    unsigned debugs = daemon_count_log(&stage.daemon, "client_connected");
    struct client client;
    daemon_connect(&stage.daemon, &client);
    client_expect(&client, "PONG", "PING");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "client_connected"), debugs);
    client_close(&client);
    stage_close(&stage);
}

TEST(limits_are_reloaded)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three);
    daemon_edit(&stage.daemon, "log:", "limits: {clients_per_address: 1}\nlog:");
    expect_reloaded(&stage.daemon, "limits.clients_per_address");
    daemon_connect(&stage.daemon, &client);
    client_read_match(&client, "LIMIT clients");
    client_close(&client);
    daemon_edit(&stage.daemon, "clients_per_address: 1}", "clients_per_address: 2}");
    expect_reloaded(&stage.daemon, "limits.clients_per_address");
    daemon_connect(&stage.daemon, &client);
    client_expect(&client, "PONG", "PING");
    client_close(&client);
    stage_close(&stage);
}

TEST(a_reload_does_not_disturb_holders_and_waiters)
{
    struct stage stage;
    struct client holder;
    struct client waiter;
    stage_open(&stage, __func__, &three);
    daemon_connect(&stage.daemon, &holder);
    daemon_connect(&stage.daemon, &waiter);
    client_expect_match(&holder, "OK [0-9a-f]{40} .*", "LOCK a 4s HOLD");
    client_send(&waiter, "LOCK a 10s WAIT 60s\n");
    stage_wait_stats(&stage.client, "waiting=1");
    daemon_edit(&stage.daemon, "clock_drift_margin: 40ms",
                "clock_drift_margin: 40ms, max_hold: 2h, max_extensions: 7, fence: always");
    daemon_edit(&stage.daemon,
                "log:", "limits: {clients_per_address: 50, waiters_per_resource: 1}\nlog:");
    daemon_edit(&stage.daemon, "rounds:\n", "rounds:\n  backoff_min: 6ms\n  backoff_max: 300ms\n");
    daemon_reload(&stage.daemon, "reloaded");
    ck_assert(!client_has_line(&holder));
    ck_assert(!client_has_line(&waiter));
    client_expect(&holder, "PONG", "PING");
    /* When the holder closes its connection, the lock still goes to the waiter. The grant now has a
     * fencing token, because of the reloaded `fence: always`. */
    client_close(&holder);
    client_read_match(&waiter, "OK [0-9a-f]{40} [0-9]+ [0-9]+ [0-9]+");
    client_expect_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+ [0-9]+", "LOCK b 10s");
    client_close(&waiter);
    stage_close(&stage);
}

TEST(the_masters_password_is_read_again)
{
    struct stage stage;
    char path[SANDBOX_FILE];
    char fields[160];
    stage_open_masters(&stage, __func__, &three);
    sandbox_path(&stage.sandbox, "password", path);
    sandbox_write(path, "old\n");
    snprintf(fields, sizeof(fields), ", password_file: %s", path);
    for (unsigned i = 0; i < 3; i++)
        master_text(&stage.masters[i], "CONFIG SET requirepass old");
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3,
                   &(struct daemon_plan){.node_fields = fields});
    daemon_bootstrap(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    sandbox_write(path, "new\n");
    expect_reloaded(&stage.daemon, "nodes.password_file");
    for (unsigned i = 0; i < 3; i++) {
        master_text(&stage.masters[i], "CONFIG SET requirepass new");
        master_integer(&stage.masters[i], "CLIENT KILL TYPE normal SKIPME yes");
    }
    daemon_wait_log(&stage.daemon, "node_down", "disconnected");
    stage_wait_nodes(&stage, "vote=yes", 3);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "wrongpass"), 0);
    client_lock(&stage.client, "a", "10s");
    stage_close(&stage);
}

/* --- listeners --- */

TEST(listeners_change_and_their_connections_survive)
{
    struct stage stage;
    struct client old;
    struct client client;
    char from[64];
    char to[64];
    stage_open(
        &stage, __func__,
        &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}});
    int port = port_free();
    client_connect_tcp(&old, "127.0.0.1", stage.daemon.port);
    struct grant grant = client_lock(&old, "a", "60s");
    snprintf(from, sizeof(from), "tcp://127.0.0.1:%d", stage.daemon.port);
    snprintf(to, sizeof(to), "tcp://127.0.0.1:%d", port);
    daemon_edit(&stage.daemon, from, to);
    expect_reloaded(&stage.daemon, "listen");
    daemon_wait_log(&stage.daemon, " listening ", to);
    daemon_wait_log(&stage.daemon, " listening_stopped ", from);
    ck_assert(!client_try_tcp(&client, "127.0.0.1", stage.daemon.port));
    client_connect_tcp(&client, "127.0.0.1", port);
    client_expect_match(&client, "HELD [0-9]+", "LOCK a 10s");
    client_expect(&old, "OK", "UNLOCK a %s", grant.token);
    client_close(&client);
    client_close(&old);
    /* The unchanged listener still accepts. */
    daemon_connect(&stage.daemon, &client);
    client_expect(&client, "PONG", "PING");
    client_close(&client);
    stage_close(&stage);
}

TEST(removing_a_unix_listener_removes_its_file)
{
    struct stage stage;
    struct client client;
    char path[SANDBOX_FILE];
    char entry[160];
    stage_open(&stage, __func__, &three);
    sandbox_path(&stage.sandbox, "second", path);
    snprintf(entry, sizeof(entry), "listen:\n  - \"unix:%s\"\n", path);
    daemon_edit(&stage.daemon, "listen:\n", entry);
    expect_reloaded(&stage.daemon, "listen");
    client_connect_unix(&client, path);
    client_expect(&client, "PONG", "PING");
    daemon_edit(&stage.daemon, entry, "listen:\n");
    expect_reloaded(&stage.daemon, "listen");
    ck_assert(!sandbox_exists(path));
    ck_assert(sandbox_exists(stage.daemon.socket));
    client_expect(&client, "PONG", "PING");
    client_close(&client);
    stage_close(&stage);
}

/* A cleanup job may have deleted the socket file. */
TEST(a_deleted_socket_file_is_recreated)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three);
    unlink(stage.daemon.socket);
    expect_reloaded(&stage.daemon, "nothing");
    client_connect_unix(&client, stage.daemon.socket);
    client_expect(&client, "PONG", "PING");
    client_expect(&stage.client, "PONG", "PING");
    client_close(&client);
    /* The new file belongs to this daemon, which removes it at its end. */
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    ck_assert(!sandbox_exists(stage.daemon.socket));
    stage_close_masters(&stage);
}

/* Another file may have taken the path of the deleted socket. The listener then stays unreachable,
 * but the reload proceeds. */
TEST(a_socket_file_that_cannot_be_recreated_does_not_block_the_reload)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    unlink(stage.daemon.socket);
    sandbox_write(stage.daemon.socket, "no socket");
    daemon_edit(&stage.daemon, "log:", "limits: {clients_per_address: 1}\nlog:");
    expect_reloaded(&stage.daemon, "limits.clients_per_address");
    daemon_wait_log(&stage.daemon, "warning listener_unreachable", "the file is not a socket");
    client_expect(&stage.client, "PONG", "PING");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    char *file = sandbox_read(stage.daemon.socket);
    ck_assert_str_eq(file, "no socket");
    free(file);
    stage_close_masters(&stage);
}

TEST(a_listener_that_fails_changes_nothing)
{
    struct stage stage;
    struct client client;
    char second[SANDBOX_FILE];
    char entries[256];
    char taken[64];
    stage_open(&stage, __func__, &three);
    sandbox_path(&stage.sandbox, "second", second);
    int port = port_free();
    int fd = port_listen(AF_INET, port);
    snprintf(taken, sizeof(taken), "tcp://127.0.0.1:%d", port);
    snprintf(entries, sizeof(entries), "listen:\n  - \"unix:%s\"\n  - %s\n", second, taken);
    daemon_edit(&stage.daemon, "listen:\n", entries);
    daemon_edit(&stage.daemon, "level: debug", "level: error");
    expect_refused(&stage, "reload_refused", taken);
    /* The listener that could be opened was closed again. */
    ck_assert(!sandbox_exists(second));
    unsigned debugs = daemon_count_log(&stage.daemon, "client_connected");
    daemon_connect(&stage.daemon, &client);
    client_expect(&client, "PONG", "PING");
    ck_assert_uint_gt(daemon_count_log(&stage.daemon, "client_connected"), debugs);
    client_close(&client);
    close(fd);
    stage_close(&stage);
}

/* The daemon's own listener on 127.0.0.1 occupies the port, so the daemon cannot open a listener on
 * 0.0.0.0 with this port. */
TEST(widening_a_listener_to_every_address_needs_a_restart)
{
    struct stage stage;
    struct client client;
    char one[64];
    char every[64];
    stage_open(
        &stage, __func__,
        &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}});
    snprintf(one, sizeof(one), "tcp://127.0.0.1:%d", stage.daemon.port);
    snprintf(every, sizeof(every), "tcp://0.0.0.0:%d", stage.daemon.port);
    daemon_edit(&stage.daemon, one, every);
    daemon_edit(&stage.daemon, "log:", "insecure: true\nlog:");
    expect_refused(&stage, "reload_refused", "this daemon already uses that port");
    daemon_wait_log(&stage.daemon, "reload_refused", one);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_expect(&client, "PONG", "PING");
    client_close(&client);
    stage_close(&stage);
}

/* --- refused reloads --- */

TEST(each_mistake_is_logged_and_the_old_configuration_stays)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    daemon_edit(&stage.daemon, "cluster: e2e",
                "cluster: e2e\nlimits: {clients: none}\nnonsense: 1");
    daemon_edit(&stage.daemon, "clock_drift_margin: 40ms",
                "clock_drift_margin: 40ms, max_extensions: 1");
    expect_refused(&stage, "config_checked", ":2:19: limits.clients:");
    daemon_wait_log(&stage.daemon, "config_checked", ":3:1: nonsense:");
    /* Not even the valid change, max_extensions: 1, was applied: two extensions succeed. */
    struct grant grant = client_lock(&stage.client, "a", "60s");
    for (unsigned i = 0; i < 2; i++)
        client_expect_match(&stage.client, "OK .*", "EXTEND a %s 60s", grant.token);
    stage_close(&stage);
}

TEST(settings_that_need_a_restart_are_named_and_nothing_changes)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    daemon_edit(&stage.daemon, "clock_drift_margin: 40ms",
                "clock_drift_margin: 41ms, max_ttl: 50s, max_extensions: 1");
    expect_refused(&stage, "reload_cannot_change", "key=locks.max_ttl");
    daemon_wait_log(&stage.daemon, "reload_cannot_change", "key=locks.clock_drift_margin");
    struct grant grant = client_lock(&stage.client, "a", "60s");
    for (unsigned i = 0; i < 2; i++)
        client_expect_match(&stage.client, "OK .*", "EXTEND a %s 60s", grant.token);
    /* Without the changes that need a restart, the change of max_extensions takes effect. */
    daemon_edit(&stage.daemon, "clock_drift_margin: 41ms, max_ttl: 50s",
                "clock_drift_margin: 40ms");
    expect_reloaded(&stage.daemon, "locks.max_extensions");
    client_expect(&stage.client, "LIMIT extensions", "EXTEND a %s 60s", grant.token);
    stage_close(&stage);
}

TEST(a_missing_file_changes_nothing)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    char *text = sandbox_read(stage.daemon.config);
    unlink(stage.daemon.config);
    expect_refused(&stage, "config_checked", "No such file");
    sandbox_write(stage.daemon.config, text);
    free(text);
    expect_reloaded(&stage.daemon, "nothing");
    stage_close(&stage);
}

TEST(a_configuration_that_is_a_pipe_does_not_block_the_daemon)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    unlink(stage.daemon.config);
    ck_assert_int_eq(mkfifo(stage.daemon.config, 0600), 0);
    expect_refused(&stage, "reload_refused", "not a regular file");
    client_expect(&stage.client, "PONG", "PING");
    stage_close(&stage);
}

/* The configuration is a FIFO at first. Opening it for writing blocks until the daemon opens it for
 * reading, so that SIGHUP arrives during startup. */
TEST(sighup_during_startup_is_handled_after_it)
{
    struct stage stage;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    daemon_bootstrap(&stage.daemon);
    char *text = sandbox_read(stage.daemon.config);
    unlink(stage.daemon.config);
    ck_assert_int_eq(mkfifo(stage.daemon.config, 0600), 0);
    daemon_start(&stage.daemon, 0);
    int fd = open(stage.daemon.config, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGHUP), 0);
    unlink(stage.daemon.config);
    sandbox_write(stage.daemon.config, text);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    free(text);
    daemon_wait_log(&stage.daemon, " reloaded ", "changed=nothing");
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    stage_close(&stage);
}

TEST(a_reload_leaks_no_descriptor)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three);
    expect_reloaded(&stage.daemon, "nothing");
    stage_wait_clients(&stage, 1);
    unsigned before = process_open_files(stage.daemon.pid);
    for (unsigned i = 0; i < 20; i++)
        daemon_reload(&stage.daemon, "reloaded");
    ck_assert_uint_eq(process_open_files(stage.daemon.pid), before);
    daemon_connect(&stage.daemon, &client);
    client_close(&client);
    stage_close(&stage);
}
