/*
 * `redlock run` with host names and link-local addresses, in a private network with a nameserver
 * that never answers.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/command.h"
#include "tests/e2e/names.h"
#include "tests/e2e/namespace.h"
#include "tests/e2e/run.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static struct names names;
static char url[64];

static void open_network(void)
{
    ck_assert(namespace_become_root());
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    ck_assert_int_eq(system("ip link set lo up && ip address add fe80::1/64 dev lo nodad"), 0);
}

/* Opens a daemon at daemon.test, which resolves to 127.0.0.1. */
static void open_stage(struct stage *stage, const char *test)
{
    open_network();
    stage_open(stage, test,
               &(struct stage_plan){
                   .masters = 3,
                   .over_unix = true,
                   .daemon = {.tcp_host = "127.0.0.1"},
               });
    names_open(&names, &stage->sandbox);
    names_write_hosts(&names, "127.0.0.1 daemon.test\n");
    snprintf(url, sizeof(url), "tcp://daemon.test:%d", stage->daemon.port);
}

/* From now on, each lookup of a name fails, after a minute. */
static void silence_names(void)
{
    const struct sockaddr_in where = {
        .sin_family = AF_INET,
        .sin_port = htons(53),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&where, sizeof(where)), 0);
    sandbox_write(names.servers, "nameserver 127.0.0.1\noptions timeout:30 attempts:2\n");
    names_write_hosts(&names, "127.0.0.1 localhost\n");
}

static void start(const struct stage *stage, struct wrapper *wrapper, const char *const *words)
{
    const char *all[16] = {"--url", url};
    for (size_t i = 0; words[i] != NULL; i++)
        all[2 + i] = words[i];
    wrapper_start(wrapper, &stage->sandbox, "run", stage->daemon.socket, all);
}

static void restart_daemon(struct stage *stage)
{
    client_close(&stage->client);
    daemon_stop(&stage->daemon);
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, 3);
    daemon_connect(&stage->daemon, &stage->client);
}

static void wait_extended(struct stage *stage)
{
    int64_t before_ms = master_integer(&stage->masters[0], "PEXPIRETIME redlock:a");
    struct waiting waiting = waiting_for("an extension");
    while (master_integer(&stage->masters[0], "PEXPIRETIME redlock:a") <= before_ms)
        waiting_pause(&waiting);
}

/* The daemon restarts at its old address, while no name can be resolved. */
TEST(the_last_good_address_is_used_while_the_name_server_is_silent)
{
    struct stage stage;
    struct wrapper wrapper;
    open_stage(&stage, __func__);
    start(&stage, &wrapper, WORDS("--ttl", "6s", "a", SHELL("echo ready; exec sleep 600")));
    wrapper_wait_output(&wrapper, "ready");
    silence_names();
    restart_daemon(&stage);
    wait_extended(&stage);
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}

/* The daemon ends for good, while no name can be resolved. */
TEST(a_loss_is_signalled_while_the_name_server_is_silent)
{
    struct stage stage;
    struct wrapper wrapper;
    open_stage(&stage, __func__);
    start(
        &stage, &wrapper,
        WORDS(
            "--ttl", "6s", "a",
            SHELL("trap 'echo signalled; exit 0' TERM; echo ready; while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    silence_names();
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "signalled"), 1);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    stage_close(&stage);
}

/* The daemon restarts at a new address. The name then has two addresses; at the first one, no
 * daemon listens. */
TEST(a_daemon_with_a_new_address_is_found_by_name)
{
    struct stage stage;
    struct wrapper wrapper;
    open_stage(&stage, __func__);
    start(&stage, &wrapper, WORDS("--ttl", "6s", "a", SHELL("echo ready; exec sleep 600")));
    wrapper_wait_output(&wrapper, "ready");
    daemon_edit(&stage.daemon, "tcp://127.0.0.1:", "tcp://127.0.0.2:");
    names_write_hosts(&names, "127.0.0.3 daemon.test\n127.0.0.2 daemon.test\n");
    restart_daemon(&stage);
    wait_extended(&stage);
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}

/* `redlock run` looks up the daemon's name in a separate process. This process does not belong to
 * the command, so `redlock run` must end without waiting for it. */
TEST(the_lookup_process_does_not_delay_the_end)
{
    struct stage stage;
    struct wrapper wrapper;
    open_stage(&stage, __func__);
    start(&stage, &wrapper, WORDS("--ttl", "6s", "a", SHELL("echo ready; exec sleep 2")));
    wrapper_wait_output(&wrapper, "ready");
    silence_names();
    restart_daemon(&stage);
    ck_assert_int_eq(wrapper_wait(&wrapper), 0);
    client_expect(&stage.client, "FREE", "STATUS a");
    /* stage_close() fails if a child is left. */
    stage_close(&stage);
}

TEST(a_link_local_address_can_name_its_interface)
{
    struct stage stage;
    struct wrapper wrapper;
    open_network();
    stage_open(
        &stage, __func__,
        &(struct stage_plan){
            .masters = 3,
            .over_unix = true,
            .daemon = {.tcp_host = "[fe80::1%lo]", .yaml = "log: {level: debug}\ninsecure: true\n"},
        });
    snprintf(url, sizeof(url), "tcp://[fe80::1%%lo]:%d", stage.daemon.port);
    start(&stage, &wrapper, WORDS("a", "true"));
    ck_assert_int_eq(wrapper_wait(&wrapper), 0);
    stage_close(&stage);
}
