/*
 * Listeners: unix sockets, TCP, and the errors when the daemon cannot listen.
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};

static void open_listening(struct stage *stage, const char *test, const char *listen_fields)
{
    const struct stage_plan plan = {
        .masters = 3, .over_unix = true, .daemon = {.listen_fields = listen_fields}};
    stage_open(stage, test, &plan);
}

static struct stat stat_of(const char *path)
{
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    return status;
}

/* --- unix sockets --- */

TEST(a_unix_socket_is_for_owner_and_group_by_default)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    ck_assert_uint_eq(stat_of(stage.daemon.socket).st_mode & 07777, 0660);
    stage_close(&stage);
}

TEST(a_unix_socket_has_the_configured_mode)
{
    struct stage stage;
    open_listening(&stage, __func__, ", mode: \"0600\"");
    ck_assert_uint_eq(stat_of(stage.daemon.socket).st_mode & 07777, 0600);
    stage_close(&stage);
}

/* Returns a group that this process can assign to files, if possible not the process's own. */
static gid_t other_group(void)
{
    gid_t groups[64];
    int count = getgroups(64, groups);
    for (int i = 0; i < count; i++)
        if (groups[i] != getegid())
            return groups[i];
    return geteuid() == 0 ? getegid() + 1 : getegid();
}

TEST(a_unix_socket_has_the_configured_group)
{
    struct stage stage;
    char fields[64];
    gid_t group = other_group();
    snprintf(fields, sizeof(fields), ", group: %u", (unsigned)group);
    open_listening(&stage, __func__, fields);
    ck_assert_uint_eq(stat_of(stage.daemon.socket).st_gid, group);
    stage_close(&stage);
}

TEST(the_group_of_a_unix_socket_can_be_a_name)
{
    struct stage stage;
    char fields[128];
    const struct group *group = getgrgid(getegid());
    if (group == NULL) {
        printf("skipped: the group has no name\n");
        return;
    }
    snprintf(fields, sizeof(fields), ", group: %s", group->gr_name);
    open_listening(&stage, __func__, fields);
    ck_assert_uint_eq(stat_of(stage.daemon.socket).st_gid, getegid());
    stage_close(&stage);
}

/* Leaves a socket file without a listener, as a killed daemon does. */
static void leave_socket(const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    memcpy(where.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&where, sizeof(where)), 0);
    close(fd);
    ck_assert(sandbox_exists(path));
}

TEST(stale_unix_socket_is_replaced)
{
    struct stage stage;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    daemon_bootstrap(&stage.daemon);
    leave_socket(stage.daemon.socket);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    stage_close(&stage);
}

/* Left by a daemon of another user, for example one that root ran by hand. */
TEST(a_stale_unix_socket_of_another_user_is_not_called_in_use)
{
    enum { NOBODY = 65534 };
    struct stage stage;
    char above[SANDBOX_FILE];
    /* The check for leaks does not work in a process whose effective user is not its real one. */
    if (process_is_sanitized && geteuid() == 0)
        return;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    leave_socket(stage.daemon.socket);
    ck_assert_int_eq(chmod(stage.daemon.socket, 0), 0);
    if (geteuid() == 0) {
        snprintf(above, sizeof(above), "%s/..", stage.sandbox.dir);
        ck_assert_int_eq(chmod(above, 0711), 0);
        ck_assert_int_eq(chown(stage.sandbox.dir, NOBODY, (gid_t)-1), 0);
        ck_assert_int_eq(chown(stage.daemon.config, NOBODY, (gid_t)-1), 0);
        ck_assert_int_eq(seteuid(NOBODY), 0);
    }
    ck_assert_int_ne(daemon_refuses(&stage.daemon), 0);
    ck_assert_int_eq(seteuid(getuid()), 0);
    daemon_wait_log(&stage.daemon, "listen_failed", "left there: Permission denied");
    ck_assert(sandbox_exists(stage.daemon.socket));
    unlink(stage.daemon.socket);
    stage_close_masters(&stage);
}

/* Another daemon has removed the file and created it again, so this daemon must not remove it. */
TEST(a_unix_socket_of_another_daemon_is_not_removed)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    ck_assert_int_eq(unlink(stage.daemon.socket), 0);
    leave_socket(stage.daemon.socket);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    ck_assert(sandbox_exists(stage.daemon.socket));
    unlink(stage.daemon.socket);
    stage_close_masters(&stage);
}

TEST(a_live_unix_socket_is_not_taken_over)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three);
    struct daemon twin = stage.daemon;
    ck_assert_int_ne(daemon_refuses(&twin), 0);
    daemon_wait_log(&twin, "listen_failed", stage.daemon.socket);
    /* The first daemon is not affected. */
    daemon_connect(&stage.daemon, &client);
    client_expect(&client, "PONG", "PING");
    client_close(&client);
    stage_close(&stage);
}

/* Opens a listener that does not accept connections, and fills its backlog. */
static void fill_backlog(const char *path, int fds[3])
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    memcpy(where.sun_path, path, strlen(path));
    for (unsigned i = 0; i < 3; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fds[i], 0);
    }
    ck_assert_int_eq(bind(fds[0], (struct sockaddr *)&where, sizeof(where)), 0);
    ck_assert_int_eq(listen(fds[0], 0), 0);
    ck_assert_int_eq(connect(fds[1], (struct sockaddr *)&where, sizeof(where)), 0);
    ck_assert_int_eq(connect(fds[2], (struct sockaddr *)&where, sizeof(where)), -1);
    ck_assert_int_eq(errno, EAGAIN);
}

TEST(a_unix_socket_with_a_full_backlog_does_not_block_the_start)
{
    struct stage stage;
    int fds[3];
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    fill_backlog(stage.daemon.socket, fds);
    ck_assert_int_ne(daemon_refuses(&stage.daemon), 0);
    daemon_wait_log(&stage.daemon, "listen_failed", "another daemon listens there");
    ck_assert(sandbox_exists(stage.daemon.socket));
    unlink(stage.daemon.socket);
    for (unsigned i = 0; i < 3; i++)
        close(fds[i]);
    stage_close_masters(&stage);
}

TEST(a_file_that_is_not_a_socket_is_not_removed)
{
    struct stage stage;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    sandbox_write(stage.daemon.socket, "precious");
    ck_assert_int_ne(daemon_refuses(&stage.daemon), 0);
    daemon_wait_log(&stage.daemon, "listen_failed", stage.daemon.socket);
    ck_assert_int_eq(stat_of(stage.daemon.socket).st_size, 8);
    stage_close_masters(&stage);
}

/* --- TCP --- */

TEST(ipv4_is_served)
{
    struct stage stage;
    struct client client;
    const struct stage_plan plan = {
        .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};
    stage_open(&stage, __func__, &plan);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_lock(&client, "a", "10s");
    ck_assert_uint_eq(client_count(&client, "CLIENTS", "peer=127.0.0.1:"), 1);
    daemon_wait_log(&stage.daemon, " listening ", "address=tcp://127.0.0.1:");
    /* By default, a segment on the loopback device is 64 KiB and can exceed the buffers; see
     * LIMIT_SEGMENT in protocol/limits.h. */
    ck_assert_int_le(client_segment(&client), LIMIT_SEGMENT);
    client_close(&client);
    stage_close(&stage);
}

TEST(ipv6_is_served)
{
    int fd = port_listen(AF_INET6, 0);
    if (fd < 0) {
        printf("skipped: this machine has no IPv6\n");
        return;
    }
    close(fd);
    struct stage stage;
    struct client client;
    const struct stage_plan plan = {
        .masters = 3, .over_unix = true, .daemon = {.tcp_host = "[::1]"}};
    stage_open(&stage, __func__, &plan);
    client_connect_tcp(&client, "::1", stage.daemon.port);
    client_lock(&client, "a", "10s");
    ck_assert_uint_eq(client_count(&client, "CLIENTS", "peer=[::1]:"), 1);
    daemon_wait_log(&stage.daemon, " listening ", "address=tcp://[::1]:");
    client_close(&client);
    stage_close(&stage);
}

TEST(a_port_in_use_is_reported)
{
    struct stage stage;
    char address[64];
    const struct daemon_plan plan = {.tcp_host = "127.0.0.1"};
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &plan);
    int fd = port_listen(AF_INET, stage.daemon.port);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ne(daemon_refuses(&stage.daemon), 0);
    snprintf(address, sizeof(address), "tcp://127.0.0.1:%d", stage.daemon.port);
    daemon_wait_log(&stage.daemon, "listen_failed", address);
    daemon_wait_log(&stage.daemon, "listen_failed", "in use");
    /* The daemon has removed its unix socket, which it had opened before. */
    ck_assert(!sandbox_exists(stage.daemon.socket));
    close(fd);
    stage_close_masters(&stage);
}

/* --- two entries for one address --- */

/* Appends a listen entry to the configuration. */
static void add_entry(const struct daemon *daemon, const char *url)
{
    char text[256];
    snprintf(text, sizeof(text), "  - %s\nnodes:\n", url);
    daemon_edit(daemon, "nodes:\n", text);
}

static void expect_duplicate_refused(struct daemon *daemon, const char *url, const char *why)
{
    add_entry(daemon, url);
    ck_assert_int_ne(daemon_refuses(daemon), 0);
    daemon_wait_log(daemon, "listen_failed", why);
    ck_assert_uint_eq(daemon_count_log(daemon, "another daemon"), 0);
    ck_assert(!sandbox_exists(daemon->socket));
}

TEST(two_entries_for_one_address_are_reported)
{
    struct stage stage;
    char url[2 * SANDBOX_FILE];
    char why[2 * SANDBOX_FILE];
    const struct daemon_plan plan = {.tcp_host = "127.0.0.1"};
    stage_open_masters(&stage, __func__, &three);

    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &plan);
    snprintf(url, sizeof(url), "unix:/.%s", stage.daemon.socket);
    snprintf(why, sizeof(why), "in use; this daemon already uses that file for unix:%s",
             stage.daemon.socket);
    expect_duplicate_refused(&stage.daemon, url, why);

    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &plan);
    snprintf(url, sizeof(url), "tcp://localhost:%d", stage.daemon.port);
    snprintf(why, sizeof(why), "in use; this daemon already uses that port for tcp://127.0.0.1:%d",
             stage.daemon.port);
    expect_duplicate_refused(&stage.daemon, url, why);
    stage_close_masters(&stage);
}
