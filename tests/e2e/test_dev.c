/*
 * `redlockd --dev`: temporary masters, all removed at the end.
 */
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/command.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

enum { DEV_MASTERS = 5, DEV_PORT = 7335, DEV_PORT_MS = 10000 };

struct dev {
    struct sandbox sandbox;
    struct daemon daemon;
    struct client client;
    pid_t masters[DEV_MASTERS + 1];
};

/* Returns the port that the log reports. */
static int listening_port(const struct daemon *daemon)
{
    static const char before[] = "listening address=tcp://127.0.0.1:";
    daemon_wait_log(daemon, before, "");
    char *log = sandbox_read(daemon->log);
    int port = (int)strtol(strstr(log, before) + strlen(before), NULL, 10);
    free(log);
    ck_assert_int_gt(port, 0);
    return port;
}

static void wait_nodes_up(struct client *client)
{
    client_wait_count(client, "NODES", "vote=yes", DEV_MASTERS);
}

/* Starts `redlockd --dev` with this TMPDIR; NULL: the sandbox. */
static void open_dev_in(struct dev *dev, const char *test, const char *folder)
{
    sandbox_open(&dev->sandbox, test);
    dev->daemon = (struct daemon){.sandbox = &dev->sandbox};
    sandbox_path(&dev->sandbox, "redlockd.log", dev->daemon.log);
    const char *argv[] = {daemon_program(), "--dev", NULL};
    const char *environment[] = {"TMPDIR", folder != NULL ? folder : dev->sandbox.dir, NULL};
    dev->daemon.pid = process_start(&(struct process_plan){
        .argv = argv, .errors = dev->daemon.log, .environment = environment});
    client_connect_tcp(&dev->client, "127.0.0.1", listening_port(&dev->daemon));
    wait_nodes_up(&dev->client);
    unsigned count = process_children(dev->daemon.pid, dev->masters, DEV_MASTERS + 1);
    ck_assert_uint_eq(count, DEV_MASTERS);
}

static void open_dev(struct dev *dev, const char *test)
{
    open_dev_in(dev, test, NULL);
}

static void wait_masters_gone(const struct dev *dev)
{
    struct waiting waiting = waiting_for("the masters to be gone");
    for (unsigned i = 0; i < DEV_MASTERS; i++)
        while (process_runs(dev->masters[i]))
            waiting_pause(&waiting);
}

/* Counts the folders that `redlockd --dev` has created in the sandbox and not removed yet. */
static size_t count_dev_folders(const struct sandbox *sandbox)
{
    char pattern[SANDBOX_FILE];
    glob_t found = {0};
    glob(sandbox_path(sandbox, "redlockd-dev*", pattern), 0, NULL, &found);
    size_t count = found.gl_pathc;
    globfree(&found);
    return count;
}

TEST(dev_locks_without_any_setup)
{
    struct dev dev;
    open_dev(&dev, __func__);
    ck_assert_uint_ge(daemon_count_log(&dev.daemon, "UNSAFE"), 1);
    struct grant grant = client_lock(&dev.client, "deploy", "30s");
    client_expect_match(&dev.client, "HELD [0-9]+", "LOCK deploy 30s");
    client_expect(&dev.client, "OK", "UNLOCK deploy %s", grant.token);
    client_close(&dev.client);
    daemon_stop(&dev.daemon);
    sandbox_close(&dev.sandbox);
}

TEST(dev_removes_its_masters_and_files)
{
    struct dev dev;
    open_dev(&dev, __func__);
    ck_assert_uint_eq(count_dev_folders(&dev.sandbox), 1);
    client_close(&dev.client);
    daemon_stop(&dev.daemon);
    for (unsigned i = 0; i < DEV_MASTERS; i++)
        ck_assert(!process_runs(dev.masters[i]));
    ck_assert_uint_eq(count_dev_folders(&dev.sandbox), 0);
    sandbox_close(&dev.sandbox);
}

TEST(dev_ignores_an_empty_or_relative_tmpdir)
{
    static const char *const folders[] = {"", "build"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        struct dev dev;
        open_dev_in(&dev, __func__, folders[i]);
        daemon_wait_log(&dev.daemon, " dev_started ", "masters=/tmp/redlockd-dev-");
        client_close(&dev.client);
        daemon_stop(&dev.daemon);
        sandbox_close(&dev.sandbox);
    }
}

static void stop_by_signal(const char *test, int signal_number)
{
    struct dev dev;
    open_dev(&dev, test);
    client_close(&dev.client);
    ck_assert_int_eq(kill(dev.daemon.pid, signal_number), 0);
    daemon_check_end(&dev.daemon);
    wait_masters_gone(&dev);
    ck_assert_uint_eq(count_dev_folders(&dev.sandbox), 0);
    sandbox_close(&dev.sandbox);
}

TEST(dev_stops_cleanly_on_sigint)
{
    stop_by_signal(__func__, SIGINT);
}

/* A dev daemon has nothing to reload; SIGHUP means that its terminal is gone. */
TEST(dev_stops_cleanly_on_sighup)
{
    stop_by_signal(__func__, SIGHUP);
}

TEST(dev_masters_die_with_a_killed_daemon)
{
    struct dev dev;
    open_dev(&dev, __func__);
    client_close(&dev.client);
    process_kill(dev.daemon.pid);
    wait_masters_gone(&dev);
    sandbox_close(&dev.sandbox);
}

/* If another program has the port and keeps it, the test works just as well. A test in another
 * working copy gives the port back soon, however, so this function waits for it. Returns the
 * descriptor, or -1. */
static int take_dev_port(void)
{
    struct waiting waiting = waiting_for("the port of --dev");
    int64_t end_ms = waiting_clock_ms() + DEV_PORT_MS;
    int fd;
    while ((fd = port_listen(AF_INET, DEV_PORT)) < 0 && waiting_clock_ms() < end_ms)
        waiting_pause(&waiting);
    return fd;
}

TEST(dev_uses_another_port_if_its_own_is_taken)
{
    struct dev dev;
    int fd = take_dev_port();
    open_dev(&dev, __func__);
    ck_assert_int_ne(listening_port(&dev.daemon), DEV_PORT);
    daemon_wait_log(&dev.daemon, "warning port_changed", "usual=tcp://127.0.0.1:7335");
    client_lock(&dev.client, "deploy", "30s");
    client_close(&dev.client);
    daemon_stop(&dev.daemon);
    if (fd >= 0)
        close(fd);
    sandbox_close(&dev.sandbox);
}

TEST(dev_without_redis_names_the_package_to_install)
{
    struct sandbox sandbox;
    struct command command;
    sandbox_open(&sandbox, __func__);
    /* No program is in PATH; redlockd itself is run by its path. */
    setenv("PATH", sandbox.dir, 1);
    command_run(&command, &sandbox, (const char *[]){daemon_program(), "--dev", NULL});
    ck_assert_int_eq(command.status, 1);
    ck_assert_ptr_nonnull(strstr(command.errors, "install redis-server"));
    ck_assert_uint_eq(count_dev_folders(&sandbox), 0);
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(dev_names_the_directory_that_it_cannot_write_to)
{
    struct sandbox sandbox;
    struct command command;
    sandbox_open(&sandbox, __func__);
    command_run(&command, &sandbox,
                (const char *[]){"env", "TMPDIR=/nonexistent", daemon_program(), "--dev", NULL});
    ck_assert_int_eq(command.status, 1);
    ck_assert_ptr_nonnull(
        strstr(command.errors, "cannot create a directory in /nonexistent: No such"));
    command_free(&command);
    sandbox_close(&sandbox);
}
