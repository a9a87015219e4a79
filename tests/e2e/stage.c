#include "tests/e2e/stage.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/e2e/waiting.h"

void stage_open_masters(struct stage *stage, const char *test, const struct stage_plan *plan)
{
    ck_assert_int_le(plan->masters, STAGE_MASTERS);
    sandbox_open(&stage->sandbox, test);
    stage->master_count = plan->masters;
    masters_start(stage->masters, plan->masters, &stage->sandbox,
                  &(struct master_plan){.over_tcp = !plan->over_unix,
                                        .steppable = plan->steppable,
                                        .durable = plan->durable});
}

void stage_close_masters(struct stage *stage)
{
    for (unsigned i = 0; i < stage->master_count; i++)
        master_kill(&stage->masters[i]);
    ck_assert_msg(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child process is left");
    sandbox_close(&stage->sandbox);
}

void stage_start_daemon(const struct stage *stage, struct daemon *daemon,
                        const struct daemon_plan *plan)
{
    daemon_prepare(daemon, &stage->sandbox, stage->masters, stage->master_count, plan);
    daemon_start(daemon, plan->open_files);
    daemon_wait_up(daemon, stage->master_count);
}

void stage_open(struct stage *stage, const char *test, const struct stage_plan *plan)
{
    stage_open_masters(stage, test, plan);
    daemon_prepare(&stage->daemon, &stage->sandbox, stage->masters, stage->master_count,
                   &plan->daemon);
    daemon_bootstrap(&stage->daemon);
    stage_start_daemon(stage, &stage->daemon, &plan->daemon);
    daemon_connect(&stage->daemon, &stage->client);
}

void stage_close(struct stage *stage)
{
    client_close(&stage->client);
    daemon_stop(&stage->daemon);
    ck_assert_msg(!sandbox_exists(stage->daemon.socket), "the socket file is left");
    stage_close_masters(stage);
}

void stage_stop_masters(struct stage *stage, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++)
        master_stop(&stage->masters[i]);
}

void stage_continue_masters(struct stage *stage, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++)
        master_continue(&stage->masters[i]);
}

void stage_wait_nodes(struct stage *stage, const char *text, unsigned count)
{
    client_wait_count(&stage->client, "NODES", text, count);
}

void stage_wait_key(struct stage *stage, const char *key, unsigned count)
{
    struct waiting waiting = waiting_for_release(key);
    while (masters_with(stage->masters, stage->master_count, key) != count)
        waiting_pause(&waiting);
}

void stage_wait_no_keys(struct stage *stage)
{
    struct waiting waiting = waiting_for_release("the masters to be empty");
    while (masters_keys(stage->masters, stage->master_count) != 0)
        waiting_pause(&waiting);
}

void stage_wait_in_flight(struct stage *stage)
{
    struct waiting waiting = waiting_for("a request to be in flight");
    while (client_count(&stage->client, "CLIENTS", "under_way=0") ==
           client_count(&stage->client, "CLIENTS", "client="))
        waiting_pause(&waiting);
}

void stage_wait_stats(struct client *client, const char *text)
{
    struct waiting waiting = waiting_for(text);
    while (client_count(client, "STATS", text) == 0)
        waiting_pause(&waiting);
}

/* Reads a count of the daemon from STATS. The other lines of STATS are skipped. */
static long read_count(struct client *client, const char *name)
{
    char word[32];
    int len = snprintf(word, sizeof(word), " %s=", name);
    const char *found = strstr(client_ask(client, "STATS"), word);
    ck_assert_msg(found != NULL, "STATS has no %s", name);
    long count = strtol(found + len, NULL, 10);
    while (strcmp(client_read(client), "END") != 0)
        ;
    return count;
}

void stage_wait_count(struct client *client, const char *name, long count)
{
    struct waiting waiting = waiting_for(name);
    while (read_count(client, name) < count)
        waiting_pause(&waiting);
}

void stage_wait_clients(struct stage *stage, unsigned count)
{
    client_wait_count(&stage->client, "CLIENTS", "client=", count);
}
