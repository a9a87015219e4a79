#include "tests/torture/cluster.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/e2e/waiting.h"
#include "tests/torture/faults.h"

/* --- the paths to the masters --- */

static void by_proxy(const struct torture *torture, struct master *seen)
{
    for (unsigned i = 0; i < STAGE_MASTERS; i++) {
        snprintf(seen[i].host, MASTER_HOST, "127.0.0.1");
        seen[i].port = torture->proxy.lines[i].port;
    }
}

static void by_socket(struct master *seen)
{
    for (unsigned i = 0; i < STAGE_MASTERS; i++)
        seen[i].over_tcp = false;
}

static void plan_daemon(const struct torture *torture, unsigned index, struct daemon_plan *plan,
                        struct master *seen)
{
    static const char *const names[] = {"proxied", "routed", "elsewhere"};
    *plan = (struct daemon_plan){
        .name = names[index],
        .tcp_host = "127.0.0.1",
        .node_timeout_ms = TORTURE_NODE_TIMEOUT_MS,
        .locks = ", max_ttl: 1s",
        .yaml = "log: {level: info}\n",
    };
    memcpy(seen, torture->stage.masters, sizeof(torture->stage.masters));
    if (index == DAEMON_PROXIED)
        by_proxy(torture, seen);
    if (index == DAEMON_ELSEWHERE) {
        by_socket(seen);
        plan->other_host = true;
    }
    if (index == DAEMON_ROUTED && torture->net.there) {
        plan->network = torture->net.theirs;
        plan->tcp_host = NET_THEIRS;
        plan->yaml = "insecure: true\nlog: {level: info}\n";
    }
}

/* --- start --- */

static void start_masters(struct torture *torture)
{
    struct stage *stage = &torture->stage;
    struct master_plan plan = {.over_tcp = true,
                               .steppable = true,
                               .durable = torture->durable,
                               .network = torture->net.there ? NET_MASTERS : NULL};
    stage->master_count = STAGE_MASTERS;
    masters_start(stage->masters, STAGE_MASTERS, &stage->sandbox, &plan);
    masters_start(&torture->spare, 1, &stage->sandbox,
                  &(struct master_plan){.over_tcp = true, .first = STAGE_MASTERS});
}

static void start_daemons(struct torture *torture)
{
    struct master seen[STAGE_MASTERS];
    struct daemon_plan plan;
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++) {
        struct daemon *daemon = &torture->daemons[i];
        plan_daemon(torture, i, &plan, seen);
        daemon_prepare(daemon, &torture->stage.sandbox, seen, STAGE_MASTERS, &plan);
        if (i == 0)
            daemon_bootstrap(daemon);
        daemon_start(daemon, 0);
        daemon_wait_up(daemon, STAGE_MASTERS);
    }
}

void cluster_open(struct torture *torture, const char *test)
{
    sandbox_open(&torture->stage.sandbox, test);
    if ((torture->faults >> FAULT_PARTITION & 1) != 0)
        net_open(&torture->net, &torture->stage.sandbox, STAGE_MASTERS);
    else
        torture->net = (struct net){.theirs_fd = -1};
    snprintf(torture->daemon_host, sizeof(torture->daemon_host), "%s",
             torture->net.there ? NET_THEIRS : "127.0.0.1");
    start_masters(torture);
    proxy_start(&torture->proxy, torture->stage.masters, torture->seed * 4 + 3);
    start_daemons(torture);
}

/* --- the end --- */

/* Repeat LOCK until it is granted, and then UNLOCK until it is answered OK or GONE. On a busy
 * machine some rounds may time out. */
static void must_grant(struct client *client, unsigned resource)
{
    char token[41];
    struct waiting waiting = waiting_for("a grant after the last fault");
    while (sscanf(client_ask(client, "LOCK r#%u 1s WAIT 1s", resource), "OK %40s", token) != 1)
        waiting_pause(&waiting);
    for (bool released = false; !released; waiting_pause(&waiting)) {
        const char *reply = client_ask(client, "UNLOCK r#%u %s", resource, token);
        released = strcmp(reply, "OK") == 0 || strcmp(reply, "GONE") == 0;
    }
}

void cluster_check(struct torture *torture)
{
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++)
        daemon_wait_up(&torture->daemons[i], STAGE_MASTERS);
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++) {
        struct client client;
        daemon_connect(&torture->daemons[i], &client);
        for (unsigned j = 0; j < TORTURE_RESOURCES; j++)
            must_grant(&client, j);
        stage_wait_stats(&client, " waiting=0 holding=0 ");
        client_close(&client);
    }
    stage_wait_no_keys(&torture->stage);
}

void cluster_close(struct torture *torture)
{
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++) {
        daemon_stop(&torture->daemons[i]);
        ck_assert_msg(!sandbox_exists(torture->daemons[i].socket), "a socket file is left");
    }
    proxy_end(&torture->proxy);
    net_close(&torture->net);
    master_kill(&torture->spare);
    stage_close_masters(&torture->stage);
}
