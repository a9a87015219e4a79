/*
 * Masters whose host name has to be resolved.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/names.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static struct names names;

static void name_master(struct stage *stage, unsigned master, const char *name)
{
    snprintf(stage->masters[master].host, sizeof(stage->masters[master].host), "%s", name);
}

/* Opens three masters at 127.0.0.2 to 127.0.0.4. The first is configured as first.test, which the
 * test still has to define. */
static void open_masters(struct stage *stage, const char *test)
{
    const struct master_plan plan = {.over_tcp = true, .network = "127.0.0.", .first = 2};
    sandbox_open(&stage->sandbox, test);
    names_open(&names, &stage->sandbox);
    stage->master_count = 3;
    masters_start(stage->masters, 3, &stage->sandbox, &plan);
    name_master(stage, 0, "first.test");
}

static void start_daemon(struct stage *stage, const char *yaml)
{
    daemon_prepare(&stage->daemon, &stage->sandbox, stage->masters, 3,
                   &(struct daemon_plan){.yaml = yaml});
    daemon_start(&stage->daemon, 0);
    daemon_wait_listening(&stage->daemon);
    daemon_connect(&stage->daemon, &stage->client);
}

/* Waits for an event with this host and the port of the first master. */
static void wait_address_logged(const struct stage *stage, const char *event, const char *host)
{
    char address[64];
    snprintf(address, sizeof(address), "address=%s:%d", host, stage->masters[0].port);
    daemon_wait_log(&stage->daemon, event, address);
}

TEST(each_address_of_a_name_is_tried)
{
    struct stage stage;
    open_masters(&stage, __func__);
    names_write_hosts(&names, "127.0.0.9 first.test\n"
                              "::1 first.test\n"
                              "127.0.0.1 first.test\n"
                              "127.0.0.2 first.test\n");
    start_daemon(&stage, NULL);
    wait_address_logged(&stage, "node_down node=a reason=refused ", "127.0.0.1");
    stage_wait_nodes(&stage, "state=up", 3);
    wait_address_logged(&stage, "node_up node=a ", "127.0.0.2");
    /* After the connection is lost, the daemon first tries the last good address. So no further
     * refusal is logged. */
    master_integer(&stage.masters[0], "CLIENT KILL TYPE normal SKIPME yes");
    daemon_wait_log(&stage.daemon, "node_down node=a reason=disconnected ", "");
    while (daemon_count_log(&stage.daemon, "node_up node=a ") < 2)
        stage_wait_nodes(&stage, "state=up", 3);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "reason=refused "), 1);
    stage_close(&stage);
}

TEST(a_changed_hosts_file_is_read_again)
{
    struct stage stage;
    open_masters(&stage, __func__);
    names_write_hosts(&names, "127.0.0.9 first.test\n");
    start_daemon(&stage, NULL);
    wait_address_logged(&stage, "node_down node=a reason=refused ", "127.0.0.9");
    stage_wait_nodes(&stage, "state=up", 2);
    names_write_hosts(&names, "127.0.0.2 first.test\n");
    stage_wait_nodes(&stage, "state=up", 3);
    stage_close(&stage);
}

/* A pending query to a silent nameserver must not block reading the hosts file. */
TEST(a_silent_nameserver_does_not_delay_the_hosts_file)
{
    struct stage stage;
    open_masters(&stage, __func__);
    name_master(&stage, 1, "second.test");
    name_master(&stage, 2, "third.test");
    names_write_server(&names, names_silent_server(), 1000);
    start_daemon(&stage, NULL);
    stage_wait_nodes(&stage, "reason=unresolved", 3);
    names_write_hosts(&names,
                      "127.0.0.2 first.test\n127.0.0.3 second.test\n127.0.0.4 third.test\n");
    stage_wait_nodes(&stage, "state=up", 3);
    stage_close(&stage);
}

/* After a boot, the daemon can start before the network is configured. */
TEST(a_changed_resolv_conf_is_read_again)
{
    struct stage stage;
    pid_t server;
    open_masters(&stage, __func__);
    names_write_server(&names, names_silent_server(), 1);
    start_daemon(&stage, NULL);
    /* The reported reason is the unresolved name, not an unreachable master. */
    stage_wait_nodes(&stage, "reason=unresolved", 1);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "reason=unreachable"), 0);
    names_write_server(&names, names_serve(&server), 1);
    wait_address_logged(&stage, "node_down node=a reason=refused ", "127.0.0.1");
    process_kill(server);
    stage_close(&stage);
}

/* Messages of libevent are logged in the format of the daemon. */
TEST(a_failing_nameserver_is_logged)
{
    struct stage stage;
    open_masters(&stage, __func__);
    names_write_server(&names, port_free(), 1);
    start_daemon(&stage, "log: {format: json}\n");
    daemon_wait_log(&stage.daemon, "\"event\":\"libevent_reported\"",
                    "\"message\":\"Nameserver 127.0.0.1:");
    stage_wait_nodes(&stage, "reason=unresolved", 1);
    char *log = sandbox_read(stage.daemon.log);
    for (char *rest = log, *line; (line = strsep(&rest, "\n")) != NULL;)
        ck_assert_msg(line[0] == '{' || line[0] == '\0', "in the log: %s", line);
    free(log);
    stage_close(&stage);
}

/* Returns the line of CLIENT LIST for the connection with this name; NULL: none. */
static char *connection_of(struct master *master, const char *name)
{
    char named[64], *list = master->text;
    snprintf(named, sizeof(named), " name=%s ", name);
    master_text(master, "CLIENT LIST");
    for (char *line; (line = strsep(&list, "\n")) != NULL;)
        if (strstr(line, named) != NULL)
            return line;
    return NULL;
}

static void wait_connected(struct master *master, const char *name, const char *host)
{
    char local[64], what[96];
    snprintf(local, sizeof(local), " laddr=%s:%d ", host, master->port);
    snprintf(what, sizeof(what), "the connection %s at %s", name, host);
    struct waiting waiting = waiting_for(what);
    const char *line;
    while ((line = connection_of(master, name)) == NULL || strstr(line, local) == NULL)
        waiting_pause(&waiting);
}

/* The daemon has two connections to a master, one for commands and one for tracking. If they used
 * different addresses of a name, the tracking messages could come from another server than the one
 * that has the keys. */
TEST(both_connections_to_a_master_use_the_same_address)
{
    struct stage stage;
    open_masters(&stage, __func__);
    struct master *first = &stage.masters[0];
    names_write_hosts(&names, "127.0.0.2 first.test\n");
    start_daemon(&stage, NULL);
    wait_connected(first, "redlockd-tracking", "127.0.0.2");
    master_text(first, "CONFIG SET bind %s", "127.0.0.2 127.0.0.5");
    names_write_hosts(&names, "127.0.0.5 first.test\n");
    char *id = strstr(connection_of(first, "redlockd"), "id=");
    master_integer(first, "CLIENT KILL ID %s", strsep(&id, " ") + strlen("id="));
    wait_connected(first, "redlockd", "127.0.0.5");
    wait_connected(first, "redlockd-tracking", "127.0.0.5");
    stage_close(&stage);
}
