/*
 * Notifications to systemd and inherited sockets. The test takes the place of systemd: it opens the
 * notify socket and the listening sockets.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "tests/e2e/http.h"
#include "tests/e2e/notify.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};

/* Prepares masters and a daemon without starting the daemon. */
static void prepare(struct stage *stage, const char *test, const struct daemon_plan *plan)
{
    stage_open_masters(stage, test, &three);
    daemon_prepare(&stage->daemon, &stage->sandbox, stage->masters, 3, plan);
    daemon_bootstrap(&stage->daemon);
}

static void start(struct stage *stage)
{
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, 3);
    daemon_connect(&stage->daemon, &stage->client);
}

/* --- notifications --- */

static void open_notified(struct stage *stage, struct notify *notify, const char *test,
                          const char *watchdog_us)
{
    prepare(stage, test, &three.daemon);
    notify_open(notify, &stage->sandbox, watchdog_us);
    stage->daemon.environment = notify->environment;
}

TEST(ready_is_sent_once_the_daemon_listens)
{
    struct stage stage;
    struct notify notify;
    struct client client;
    open_notified(&stage, &notify, __func__, NULL);
    daemon_start(&stage.daemon, 0);
    const char *first = notify_read(&notify);
    ck_assert_msg(strncmp(first, "READY=1\nSTATUS=0/3 voting, 0 locks", 35) == 0, "first is %s",
                  first);
    /* READY means that the socket accepts connections already. */
    ck_assert(client_try_unix(&client, stage.daemon.socket));
    client_close(&client);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    notify_close(&notify);
    stage_close(&stage);
}

TEST(status_follows_votes_and_locks)
{
    struct stage stage;
    struct notify notify;
    open_notified(&stage, &notify, __func__, NULL);
    start(&stage);
    notify_wait(&notify, "STATUS=3/3 voting, 0 locks");
    struct grant grant = client_lock(&stage.client, "a", "60s");
    notify_wait(&notify, "STATUS=3/3 voting, 1 lock");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    master_kill(&stage.masters[2]);
    notify_wait(&notify, "STATUS=2/3 voting, 0 locks");
    notify_close(&notify);
    stage_close(&stage);
}

TEST(an_unchanged_status_is_not_sent_again)
{
    struct stage stage;
    struct notify notify;
    open_notified(&stage, &notify, __func__, NULL);
    start(&stage);
    notify_wait(&notify, "STATUS=3/3 voting, 0 locks");
    ck_assert(notify_is_quiet(&notify, 2500));
    notify_close(&notify);
    stage_close(&stage);
}

TEST(the_status_is_sent_once_a_second_at_most)
{
    struct stage stage;
    struct notify notify;
    open_notified(&stage, &notify, __func__, NULL);
    start(&stage);
    notify_wait(&notify, "STATUS=3/3 voting, 0 locks");
    /* Each grant changes the status. */
    int64_t begin_ms = waiting_clock_ms();
    struct waiting waiting = waiting_for("some seconds to pass");
    unsigned locks = 0;
    char text[32];
    for (; waiting_clock_ms() < begin_ms + 2500; locks++) {
        snprintf(text, sizeof(text), "r%u", locks);
        client_lock(&stage.client, text, "60s");
        waiting_pause(&waiting);
    }
    int64_t changing_ms = waiting_clock_ms() - begin_ms;
    unsigned messages = notify_count(&notify, 1500);
    snprintf(text, sizeof(text), ", %u locks", locks);
    ck_assert_ptr_nonnull(strstr(notify.message, text));
    /* One message for each whole second in which the status changed, one for the second that had
     * begun, and one with the final status. */
    ck_assert_int_le(messages, changing_ms / 1000 + 2);
    notify_close(&notify);
    stage_close(&stage);
}

TEST(stopping_is_sent_when_the_shutdown_begins)
{
    struct stage stage;
    struct notify notify;
    open_notified(&stage, &notify, __func__, NULL);
    start(&stage);
    daemon_stop(&stage.daemon);
    notify_wait(&notify, "STOPPING=1");
    notify_close(&notify);
    stage_close(&stage);
}

TEST(a_reload_is_reported_even_if_refused)
{
    struct stage stage;
    struct notify notify;
    open_notified(&stage, &notify, __func__, NULL);
    start(&stage);
    notify_wait(&notify, "STATUS=3/3 voting");
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(kill(stage.daemon.pid, SIGHUP), 0);
        ck_assert_ptr_nonnull(strstr(notify_wait(&notify, "RELOADING=1"), "\nMONOTONIC_USEC="));
        notify_wait(&notify, "READY=1");
        if (i == 1)
            notify_wait(&notify, "STATUS=3/3 voting, 0 locks; the last reload was refused");
        daemon_wait_log(&stage.daemon, i == 0 ? " reloaded " : " reload_refused ", "");
        sandbox_write(stage.daemon.config, "nonsense: 1\n");
    }
    notify_close(&notify);
    stage_close(&stage);
}

/* A stopped daemon cannot feed the watchdog, and no other process may do it. */
TEST(the_watchdog_is_fed_only_while_the_daemon_runs)
{
    struct stage stage;
    struct notify notify;
    open_notified(&stage, &notify, __func__, "200000");
    start(&stage);
    /* The daemon feeds the watchdog every tenth of a second, which is half of WATCHDOG_USEC. */
    struct waiting waiting = waiting_for("the watchdog to be fed");
    for (unsigned i = 0; i < 5; i++)
        notify_wait(&notify, "WATCHDOG=1");
    ck_assert_int_gt(waiting_left_ms(&waiting), 0);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGSTOP), 0);
    while (process_runs(stage.daemon.pid) && !notify_is_quiet(&notify, 0))
        ;
    ck_assert(notify_is_quiet(&notify, 600));
    ck_assert_int_eq(kill(stage.daemon.pid, SIGCONT), 0);
    notify_wait(&notify, "WATCHDOG=1");
    notify_close(&notify);
    stage_close(&stage);
}

TEST(the_watchdog_is_fed_during_the_shutdown)
{
    const struct stage_plan lingering = {.masters = 3, .daemon = {.node_timeout_ms = 1500}};
    struct stage stage;
    struct notify notify;
    stage_open_masters(&stage, __func__, &lingering);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &lingering.daemon);
    daemon_bootstrap(&stage.daemon);
    notify_open(&notify, &stage.sandbox, "200000");
    stage.daemon.environment = notify.environment;
    start(&stage);
    /* The LOCK stays in flight, so the shutdown lasts longer than an interval of the watchdog. */
    stage_stop_masters(&stage, 1, 2);
    client_send(&stage.client, "LOCK a 60s\n");
    struct client other;
    daemon_connect(&stage.daemon, &other);
    while (client_count(&other, "CLIENTS", "under_way=1") == 0)
        ;
    client_close(&other);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGTERM), 0);
    notify_wait(&notify, "STOPPING=1");
    notify_wait(&notify, "WATCHDOG=1");
    stage_continue_masters(&stage, 1, 2);
    daemon_check_end(&stage.daemon);
    notify_close(&notify);
    stage_close(&stage);
}

/* systemd itself may be blocked. Important messages are sent once there is room. */
TEST(a_full_notify_socket_does_not_delay_clients)
{
    struct stage stage;
    struct notify notify;
    open_notified(&stage, &notify, __func__, "200000");
    notify_fill(&notify);
    start(&stage);
    struct grant grant = client_lock(&stage.client, "a", "10s");
    notify_wait(&notify, "READY=1");
    notify_wait(&notify, "WATCHDOG=1");
    notify_fill(&notify);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGHUP), 0);
    daemon_wait_log(&stage.daemon, " reloaded ", "");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    notify_wait(&notify, "READY=1");
    notify_fill(&notify);
    daemon_stop(&stage.daemon);
    notify_close(&notify);
    stage_close(&stage);
}

TEST(the_watchdog_is_fed_without_free_descriptors)
{
    struct stage stage;
    struct notify notify;
    struct rlimit before;
    open_notified(&stage, &notify, __func__, "200000");
    start(&stage);
    ck_assert_int_eq(prlimit(stage.daemon.pid, RLIMIT_NOFILE, NULL, &before), 0);
    const struct rlimit none = {3, before.rlim_max};
    ck_assert_int_eq(prlimit(stage.daemon.pid, RLIMIT_NOFILE, &none, NULL), 0);
    (void)notify_is_quiet(&notify, 0); /* discard older messages */
    for (unsigned i = 0; i < 5; i++)
        notify_wait(&notify, "WATCHDOG=1");
    ck_assert_int_eq(prlimit(stage.daemon.pid, RLIMIT_NOFILE, &before, NULL), 0);
    notify_close(&notify);
    stage_close(&stage);
}

TEST(an_abstract_notify_address_is_supported)
{
    struct stage stage;
    struct notify notify;
    prepare(&stage, __func__, &three.daemon);
    notify_open_abstract(&notify, &stage.sandbox);
    stage.daemon.environment = notify.environment;
    start(&stage);
    notify_wait(&notify, "READY=1");
    notify_close(&notify);
    stage_close(&stage);
}

/* --- inherited sockets --- */

static int listen_unix(const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(where.sun_path, path, strlen(path));
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&where, sizeof(where)), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    return fd;
}

TEST(an_inherited_socket_serves_its_entry)
{
    struct stage stage;
    struct client client;
    prepare(&stage, __func__, &(struct daemon_plan){.tcp_host = "127.0.0.1"});
    int sockets[] = {port_listen(AF_INET, stage.daemon.port)};
    stage.daemon.sockets = sockets;
    stage.daemon.socket_count = 1;
    /* The unix listener is opened by the daemon as usual. */
    start(&stage);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_lock(&client, "a", "10s");
    ck_assert_int_le(client_segment(&client), LIMIT_SEGMENT);
    client_close(&client);
    close(sockets[0]);
    stage_close(&stage);
}

TEST(an_inherited_unix_socket_keeps_its_file)
{
    struct stage stage;
    struct stat before;
    struct stat after;
    prepare(&stage, __func__, &three.daemon);
    int sockets[] = {listen_unix(stage.daemon.socket)};
    ck_assert_int_eq(stat(stage.daemon.socket, &before), 0);
    stage.daemon.sockets = sockets;
    stage.daemon.socket_count = 1;
    start(&stage);
    client_lock(&stage.client, "a", "10s");
    daemon_stop(&stage.daemon);
    ck_assert_int_eq(stat(stage.daemon.socket, &after), 0);
    ck_assert_uint_eq(after.st_ino, before.st_ino);
    /* Without its file, a reload says what to do. */
    start(&stage);
    unlink(stage.daemon.socket);
    kill(stage.daemon.pid, SIGHUP);
    daemon_wait_log(&stage.daemon, "warning listener_unreachable", "restart redlockd.socket and");
    close(sockets[0]);
    stage_close(&stage);
}

TEST(an_inherited_socket_without_an_entry_is_an_error)
{
    struct stage stage;
    char address[64];
    prepare(&stage, __func__, &three.daemon);
    int port = port_free();
    int sockets[] = {port_listen(AF_INET, port)};
    stage.daemon.sockets = sockets;
    stage.daemon.socket_count = 1;
    ck_assert_int_ne(daemon_refuses(&stage.daemon), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%d, which is not under `listen`", port);
    daemon_wait_log(&stage.daemon, "listen_failed", address);
    ck_assert(!sandbox_exists(stage.daemon.socket));
    close(sockets[0]);
    stage_close_masters(&stage);
}

/* The inherited wildcard socket occupies the port of the entry. The message must not blame another
 * daemon. */
TEST(a_wildcard_socket_does_not_match_a_specific_entry)
{
    struct stage stage;
    char address[64];
    prepare(&stage, __func__, &(struct daemon_plan){.tcp_host = "127.0.0.1"});
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)stage.daemon.port)};
    int sockets[] = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ck_assert_int_eq(bind(sockets[0], (struct sockaddr *)&where, sizeof(where)), 0);
    ck_assert_int_eq(listen(sockets[0], 1), 0);
    stage.daemon.sockets = sockets;
    stage.daemon.socket_count = 1;
    ck_assert_int_ne(daemon_refuses(&stage.daemon), 0);
    snprintf(address, sizeof(address), "0.0.0.0:%d, which is not under `listen`",
             stage.daemon.port);
    daemon_wait_log(&stage.daemon, "listen_failed", address);
    close(sockets[0]);
    stage_close_masters(&stage);
}

TEST(an_inherited_socket_that_does_not_listen_is_an_error)
{
    struct stage stage;
    prepare(&stage, __func__, &three.daemon);
    int sockets[] = {socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    stage.daemon.sockets = sockets;
    stage.daemon.socket_count = 1;
    ck_assert_int_ne(daemon_refuses(&stage.daemon), 0);
    daemon_wait_log(&stage.daemon, "listen_failed", "Accept=no");
    close(sockets[0]);
    stage_close_masters(&stage);
}

/* If the daemon closed the socket, systemd would keep it open, and clients would wait for ever. */
TEST(a_reload_does_not_close_an_inherited_socket)
{
    struct stage stage;
    struct client client;
    char entry[64];
    prepare(&stage, __func__, &(struct daemon_plan){.tcp_host = "127.0.0.1"});
    int sockets[] = {port_listen(AF_INET, stage.daemon.port)};
    stage.daemon.sockets = sockets;
    stage.daemon.socket_count = 1;
    start(&stage);
    char *file = sandbox_read(stage.daemon.config);
    snprintf(entry, sizeof(entry), "  - tcp://127.0.0.1:%d\n", stage.daemon.port);
    daemon_edit(&stage.daemon, entry, "");
    ck_assert_int_eq(kill(stage.daemon.pid, SIGHUP), 0);
    daemon_wait_log(&stage.daemon, "reload_refused", "systemd owns this socket");
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_expect(&client, "PONG", "PING");
    client_close(&client);
    sandbox_write(stage.daemon.config, file);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGHUP), 0);
    daemon_wait_log(&stage.daemon, " reloaded ", "changed=nothing");
    free(file);
    close(sockets[0]);
    stage_close(&stage);
}

/* --- a restart under load --- */

enum { WORKERS = 8, RESTARTS = 3 };

struct worker {
    pthread_t thread;
    int port;
    unsigned number;
    atomic_bool *over;
    atomic_uint granted;
    atomic_uint refused; /* refused connections */
    atomic_uint again;   /* reconnects after SHUTDOWN or a close */
};

static bool ask(int fd, const char *line, char *reply, size_t size)
{
    size_t len = 0;
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line))
        return false;
    while (len + 1 < size && recv(fd, reply + len, 1, 0) == 1 && reply[len] != '\n')
        len++;
    bool whole = len + 1 < size && reply[len] == '\n';
    reply[len] = '\0';
    return whole;
}

/* Acquires and releases the lock that all workers compete for. False: connect again. */
static bool work(struct worker *worker, int fd)
{
    char reply[256];
    char unlock[128];
    char token[41];
    if (!ask(fd, "LOCK shared 1s WAIT 20s\n", reply, sizeof(reply)) ||
        sscanf(reply, "OK %40[0-9a-f]", token) != 1)
        return false;
    worker->granted++;
    snprintf(unlock, sizeof(unlock), "UNLOCK shared %s\n", token);
    return ask(fd, unlock, reply, sizeof(reply)) && strcmp(reply, "SHUTDOWN") != 0;
}

static void *run_worker(void *context)
{
    struct worker *worker = context;
    const struct sockaddr_in where = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)worker->port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    while (!*worker->over) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (const struct sockaddr *)&where, sizeof(where)) != 0)
            worker->refused++;
        while (!*worker->over && work(worker, fd))
            ;
        worker->again++;
        close(fd);
    }
    return NULL;
}

static void wait_for_more_grants(struct worker *workers)
{
    unsigned before[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++)
        before[i] = workers[i].granted;
    for (unsigned i = 0; i < WORKERS; i++) {
        struct waiting waiting = waiting_for("each worker to be granted the lock again");
        while (workers[i].granted <= before[i])
            waiting_pause(&waiting);
    }
}

static void restart(struct stage *stage)
{
    ck_assert_int_eq(kill(stage->daemon.pid, SIGTERM), 0);
    daemon_check_end(&stage->daemon);
    daemon_start(&stage->daemon, 0);
}

TEST(restart_under_load_refuses_no_connection_and_loses_no_lock)
{
    struct stage stage;
    struct worker workers[WORKERS] = {0};
    atomic_bool over = false;
    prepare(&stage, __func__, &(struct daemon_plan){.tcp_host = "127.0.0.1"});
    int sockets[] = {port_listen(AF_INET, stage.daemon.port)};
    stage.daemon.sockets = sockets;
    stage.daemon.socket_count = 1;
    start(&stage);
    struct grant grant = client_lock(&stage.client, "kept", "60s");
    client_close(&stage.client);
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].port = stage.daemon.port;
        workers[i].number = i;
        workers[i].over = &over;
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    wait_for_more_grants(workers);
    for (unsigned i = 0; i < RESTARTS; i++) {
        restart(&stage);
        wait_for_more_grants(workers);
    }
    over = true;
    unsigned again = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_uint_eq(workers[i].refused, 0);
        again += workers[i].again;
    }
    ck_assert_uint_ge(again, WORKERS);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK kept 60s");
    client_expect_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+", "EXTEND kept %s 60s",
                        grant.token);
    client_expect(&stage.client, "OK", "UNLOCK kept %s", grant.token);
    close(sockets[0]);
    stage_close(&stage);
}

/* At its start, the daemon delays clients for at most START_MS until a quorum votes, and then for
 * at most START_ALL_MS until the other masters vote as well. */
enum { START_MS = 2000, START_ALL_MS = 100 };

/* Starts the daemon with a LOCK in the backlog. True if the LOCK is granted. A refusal within
 * START_ALL_MS of the start fails the test. A later refusal does not, because it is possible on a
 * busy machine that has not scheduled the masters. */
static bool grants_queued_lock(struct stage *stage)
{
    struct client client;
    client_connect_tcp(&client, "127.0.0.1", stage->daemon.port);
    client_send(&client, "LOCK a 10s\n");
    int64_t started_ms = waiting_clock_ms();
    daemon_start(&stage->daemon, 0);
    bool granted = strncmp(client_read(&client), "OK ", 3) == 0;
    if (!granted && waiting_clock_ms() - started_ms < START_ALL_MS)
        ck_abort_msg("refused at once: %s", client.line);
    client_close(&client);
    daemon_stop(&stage->daemon);
    masters_run(stage->masters, 3, "DEL redlock:a");
    return granted;
}

/* Requests that arrive before the start wait in the backlog, and the daemon reads them as soon as
 * it has started. */
TEST(requests_queued_before_the_start_find_a_quorum)
{
    struct stage stage;
    prepare(&stage, __func__, &(struct daemon_plan){.tcp_host = "127.0.0.1"});
    int sockets[] = {port_listen(AF_INET, stage.daemon.port)};
    stage.daemon.sockets = sockets;
    stage.daemon.socket_count = 1;
    struct waiting waiting = waiting_for("ten starts that find a quorum");
    for (unsigned granted = 0; granted < 10;)
        if (grants_queued_lock(&stage))
            granted++;
        else
            waiting_pause(&waiting);
    close(sockets[0]);
    stage_close_masters(&stage);
}

/* The masters are stopped for START_MS, and the daemon is stopped during that time too. The daemon
 * must not count this time. It must read the replies of the masters before it refuses the LOCK. */
TEST(time_stopped_during_startup_does_not_count)
{
    struct stage stage;
    struct client client;
    prepare(&stage, __func__, &(struct daemon_plan){.node_timeout_ms = 10000});
    for (unsigned i = 0; i < 3; i++)
        master_stop(&stage.masters[i]);
    daemon_start(&stage.daemon, 0);
    daemon_wait_log(&stage.daemon, "listening", "unix:");
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "LOCK a 10s\n");
    process_stop(stage.daemon.pid);
    int64_t until_ms = waiting_clock_ms() + START_MS;
    struct waiting waiting = waiting_for("the time of a start");
    while (waiting_clock_ms() < until_ms)
        waiting_pause(&waiting);
    for (unsigned i = 0; i < 3; i++)
        master_continue(&stage.masters[i]);
    kill(stage.daemon.pid, SIGCONT);
    client_read_match(&client, "OK [0-9a-f]{40} .*");
    client_close(&client);
    daemon_stop(&stage.daemon);
    stage_close_masters(&stage);
}

/* Two of three masters are down (loop index 0) or hung (1). Clients wait only until the daemon
 * knows this. While they wait, the admin listener already answers. */
TEST_LOOP(clients_get_noquorum_at_startup_without_masters, 0, 2)
{
    struct stage stage;
    struct client client;
    static char yaml[96];
    int port = port_free();
    snprintf(yaml, sizeof(yaml), "admin: http://127.0.0.1:%d\nlog: {level: debug}\n", port);
    prepare(&stage, __func__, &(struct daemon_plan){.node_timeout_ms = 50, .yaml = yaml});
    for (unsigned i = 1; i < 3; i++)
        if (_i == 0)
            master_kill(&stage.masters[i]);
        else
            master_stop(&stage.masters[i]);
    daemon_start(&stage.daemon, 0);
    daemon_wait_log(&stage.daemon, "listening", "http://");
    free(http_get(port, "/readyz", 503));
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "LOCK a 10s\n");
    client_read_match(&client, _i == 0 ? "NOQUORUM [01]/3 need=2 .*b:refused c:refused"
                                       : "NOQUORUM [01]/3 need=2 .*b:hung c:hung");
    client_close(&client);
    for (unsigned i = 1; _i == 1 && i < 3; i++)
        master_continue(&stage.masters[i]);
    daemon_stop(&stage.daemon);
    stage_close_masters(&stage);
}

TEST(a_waiter_gets_shutdown_at_a_restart_and_can_wait_again)
{
    struct stage stage;
    struct client waiter;
    prepare(&stage, __func__, &(struct daemon_plan){.tcp_host = "127.0.0.1"});
    int sockets[] = {port_listen(AF_INET, stage.daemon.port)};
    stage.daemon.sockets = sockets;
    stage.daemon.socket_count = 1;
    start(&stage);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_connect_tcp(&waiter, "127.0.0.1", stage.daemon.port);
    client_send(&waiter, "LOCK a 60s WAIT 60s\n");
    stage_wait_stats(&stage.client, "waiting=1");
    client_close(&stage.client);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGTERM), 0);
    client_read_match(&waiter, "SHUTDOWN");
    client_close(&waiter);
    daemon_check_end(&stage.daemon);
    /* While no daemon runs, the new connection waits in the backlog of the inherited socket. */
    client_connect_tcp(&waiter, "127.0.0.1", stage.daemon.port);
    client_send(&waiter, "LOCK a 60s WAIT 60s\n");
    start(&stage);
    stage_wait_stats(&stage.client, "waiting=1");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    client_read_match(&waiter, "OK [0-9a-f]{40} .*");
    client_close(&waiter);
    close(sockets[0]);
    stage_close(&stage);
}
