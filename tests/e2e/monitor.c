#include "tests/e2e/monitor.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "tests/e2e/waiting.h"

void monitor_open(struct monitor *monitor, struct master *master)
{
    const struct timeval timeout = {.tv_sec = WAITING_DEADLINE_MS / 1000};
    *monitor = (struct monitor){.master = master};
    monitor->context = master->over_tcp ? redisConnect("127.0.0.1", master->port)
                                        : redisConnectUnix(master->socket);
    ck_assert_ptr_nonnull(monitor->context);
    ck_assert_int_eq(monitor->context->err, 0);
    ck_assert_int_eq(redisSetTimeout(monitor->context, timeout), REDIS_OK);
    redisReply *reply = redisCommand(monitor->context, "MONITOR");
    ck_assert_ptr_nonnull(reply);
    freeReplyObject(reply);
}

void monitor_close(struct monitor *monitor)
{
    redisFree(monitor->context);
}

static bool has_any(const char *line, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strstr(line, *words) != NULL)
            return true;
    return false;
}

struct monitor_counts monitor_count(struct monitor *monitor, const char *key,
                                    const char *const *words)
{
    struct monitor_counts counts = {0};
    char quoted[128];
    char marker[64];
    bool reached_marker = false;
    snprintf(quoted, sizeof(quoted), "\"%s\"", key);
    snprintf(marker, sizeof(marker), "marker-%u", ++monitor->markers);
    master_text(monitor->master, "ECHO %s", marker);
    while (!reached_marker) {
        redisReply *reply = NULL;
        ck_assert_int_eq(redisGetReply(monitor->context, (void **)&reply), REDIS_OK);
        reached_marker = strstr(reply->str, marker) != NULL;
        if (strstr(reply->str, quoted) != NULL && strstr(reply->str, " lua]") == NULL) {
            counts.commands++;
            counts.others += !has_any(reply->str, words);
        }
        freeReplyObject(reply);
    }
    return counts;
}
