#include "tests/bench/storm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/bench/client_pool.h"
#include "tests/bench/clock.h"
#include "tests/bench/must.h"

enum { HOLDS = 100, HOLD_TTL_MS = 1000, EACH = 1000, KNOWN = 65000, WAIT_MS = 600000, BATCH = 256 };
enum { LINE_CONNECTIONS = 20 };

/* Every storm is over within this time. */
#define WITHIN_NS (120 * NS_PER_S)

struct storm {
    struct overload *overload;
    struct client_pool *pool;
    bool lists;      /* each connection lists again after END */
    bool ending;     /* connections do not list again */
    uint64_t done;   /* replies; a listing counts as one */
    uint64_t failed; /* NOQUORUM, LIMIT, ERR */
    uint64_t pongs;
};

static void on_line(void *arg, unsigned connection, char *line)
{
    struct storm *storm = arg;
    const char *reply = line[0] == '#' ? strchr(line, ' ') + 1 : line;
    if (strncmp(reply, "resource=", 9) == 0 || strncmp(reply, "more=", 5) == 0)
        return;
    if (strcmp(reply, "PONG") == 0) {
        storm->pongs++;
        return;
    }
    storm->done++;
    storm->failed += strncmp(reply, "NOQUORUM", 8) == 0 || strncmp(reply, "LIMIT", 5) == 0 ||
                     strncmp(reply, "ERR", 3) == 0;
    if (storm->lists && !storm->ending)
        client_pool_put(storm->pool, connection, "LOCKS\n");
}

/* Open a stage and connections, and take the lock "held", so that each LOCK of it has to wait. */
static void open_storm(struct storm *storm, struct overload *overload, unsigned connections,
                       unsigned depth)
{
    *storm = (struct storm){.overload = overload};
    overload_open(overload, "storm", 0, 0);
    client_lock(&overload->stage.client, "held", "1h");
    storm->pool =
        client_pool_open(&(struct client_pool_plan){.host = "127.0.0.1",
                                                    .ports = {overload->stage.daemon.port},
                                                    .connections = connections,
                                                    .depth = depth,
                                                    .on_line = on_line,
                                                    .arg = storm});
}

/* Measure from here on, with a prober that runs. What was counted before does not count. */
static void restart(struct storm *storm)
{
    storm->done = storm->failed = 0;
    prober_restart(storm->overload->prober);
    overload_phase(storm->overload, true);
}

static void begin(struct storm *storm)
{
    overload_watch(storm->overload, HOLDS, HOLD_TTL_MS);
    restart(storm);
}

static void end(struct storm *storm, double values[FIGURE_COUNT])
{
    overload_phase(storm->overload, false);
    overload_watch_end(storm->overload, values);
    overload_set_cost(storm->overload, storm->done, values);
    values[FAILED] = (double)storm->failed;
}

static void close_storm(struct storm *storm)
{
    if (storm->pool != NULL)
        client_pool_close(storm->pool);
    overload_close(storm->overload);
}

static int64_t deadline(void)
{
    return clock_ns() + WITHIN_NS;
}

static void wait_waiting(struct storm *storm, unsigned count)
{
    char text[32];
    snprintf(text, sizeof(text), " waiting=%u ", count);
    stage_wait_stats(&storm->overload->stage.client, text);
}

/* --- listings --- */

void storm_list(struct overload *overload, const struct overload_row *row,
                double values[FIGURE_COUNT])
{
    struct storm storm;
    unsigned each = (KNOWN + row->connections - 1) / row->connections;
    open_storm(&storm, overload, row->connections, 1);
    /* Batches, so that no connection has more requests than it may. */
    for (unsigned i = 0; i < KNOWN; i++) {
        client_pool_put(storm.pool, i / each, "#%u LOCK known-%u 1h WAIT %d\n", i, i, WAIT_MS);
        if (i % BATCH == BATCH - 1 || i == KNOWN - 1)
            client_pool_read_until(storm.pool, &storm.done, i + 1, deadline());
    }
    must(storm.done == KNOWN && storm.failed == 0, "all locks are granted");
    begin(&storm);
    storm.lists = true;
    for (unsigned i = 0; i < row->connections; i++)
        client_pool_put(storm.pool, i, "LOCKS\n");
    client_pool_read_until(storm.pool, &storm.done, UINT64_MAX, clock_ns() + overload->for_ns);
    storm.ending = true;
    client_pool_read_until(storm.pool, &storm.done, storm.done + row->connections, deadline());
    end(&storm, values);
    close_storm(&storm);
}

/* --- waiters --- */

static void put_waiters(struct storm *storm, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        client_pool_put(storm->pool, i, "#w LOCK held 2000 WAIT %d\n", WAIT_MS);
    client_pool_flush(storm->pool);
    wait_waiting(storm, count);
}

void storm_place(struct overload *overload, const struct overload_row *row,
                 double values[FIGURE_COUNT])
{
    struct storm storm;
    uint64_t sent = 0;
    open_storm(&storm, overload, row->connections, 2);
    put_waiters(&storm, row->connections);
    begin(&storm);
    int64_t started_ns = clock_ns(), passed_ns = 0;
    while (passed_ns < overload->for_ns) {
        uint64_t due = row->at_once ? (uint64_t)(passed_ns / NS_PER_S + 1) * row->connections
                                    : (uint64_t)passed_ns * row->connections / NS_PER_S;
        for (; sent < due; sent++)
            client_pool_put(storm.pool, (unsigned)(sent % row->connections), "#%u LOCKS held\n",
                            (unsigned)sent);
        client_pool_flush(storm.pool);
        client_pool_wait(storm.pool, NS_PER_MS);
        client_pool_read(storm.pool);
        passed_ns = clock_ns() - started_ns;
    }
    client_pool_read_until(storm.pool, &storm.done, sent, deadline());
    end(&storm, values);
    close_storm(&storm);
}

/* Lock a resource for each wait. */
static void hold_own(struct storm *storm, unsigned count, unsigned depth)
{
    for (unsigned i = 0; i < count; i++) {
        client_pool_put(storm->pool, i / depth, "#%u LOCK held-%u 1h WAIT %d\n", i, i, WAIT_MS);
        if (i % BATCH == BATCH - 1 || i == count - 1)
            client_pool_read_until(storm->pool, &storm->done, i + 1, deadline());
    }
    must(storm->done == count && storm->failed == 0, "all locks are granted");
}

void storm_end(struct overload *overload, const struct overload_row *row,
               double values[FIGURE_COUNT])
{
    enum { TOGETHER = 50, SEND_NS = 250000, BEFORE_NS = 500000000 };
    struct storm storm;
    unsigned count = row->connections * row->depth;
    char own[16] = "";
    open_storm(&storm, overload, row->connections, row->depth);
    if (row->own)
        hold_own(&storm, count, row->depth);
    overload_watch(overload, HOLDS, HOLD_TTL_MS);
    int64_t instant_ns = clock_ns() + 2 * NS_PER_S + (int64_t)count * SEND_NS;
    /* A WAIT begins when the daemon has read it, so a few are awaited at a time. */
    for (unsigned i = 0; i < count; i++) {
        if (row->own)
            snprintf(own, sizeof(own), "-%u", i);
        client_pool_put(storm.pool, i / row->depth, "#%u LOCK held%s 2000 WAIT %d\n", i, own,
                        (int)((instant_ns - clock_ns()) / NS_PER_MS));
        if (i % TOGETHER != TOGETHER - 1)
            continue;
        client_pool_put(storm.pool, i / row->depth, "PING\n");
        client_pool_read_until(storm.pool, &storm.pongs, i / TOGETHER + 1, deadline());
    }
    client_pool_flush(storm.pool);
    wait_waiting(&storm, count);
    client_pool_read_until(storm.pool, &storm.done, UINT64_MAX, instant_ns - BEFORE_NS);
    restart(&storm);
    client_pool_read_until(storm.pool, &storm.done, count, deadline());
    end(&storm, values);
    must(storm.done == count, "every wait ends");
    close_storm(&storm);
}

void storm_close(struct overload *overload, const struct overload_row *row,
                 double values[FIGURE_COUNT])
{
    struct storm storm;
    open_storm(&storm, overload, row->connections, 1);
    put_waiters(&storm, row->connections);
    begin(&storm);
    client_pool_close(storm.pool);
    storm.pool = NULL;
    wait_waiting(&storm, 0);
    storm.done = row->connections;
    end(&storm, values);
    close_storm(&storm);
}

void storm_line(struct overload *overload, const struct overload_row *row,
                double values[FIGURE_COUNT])
{
    static struct load_result result;
    overload_open(overload, "storm", 0, 0);
    overload_watch(overload, HOLDS, HOLD_TTL_MS);
    overload_load(overload,
                  &(struct load_plan){.connections = LINE_CONNECTIONS,
                                      .depth = row->count / LINE_CONNECTIONS,
                                      .one_resource = true,
                                      .pollers = row->depth,
                                      .ttl_ms = OVERLOAD_TTL_MS,
                                      .wait_ms = WAIT_MS,
                                      .for_ns = overload->for_ns},
                  &result, values);
    overload_watch_end(overload, values);
    overload_set_cost(overload, result.pairs, values);
    values[JAIN] = values[MEAN_RATIO] = values[MEAN_MS] = (double)NAN;
    overload_close(overload);
}

/* --- many requests for one resource --- */

static void send_burst(struct overload *overload, const struct overload_row *row,
                       const char *request, double values[FIGURE_COUNT])
{
    struct storm storm;
    uint64_t count = (uint64_t)row->connections * row->depth;
    open_storm(&storm, overload, row->connections, row->depth);
    begin(&storm);
    for (unsigned i = 0; i < row->connections; i++)
        for (unsigned tag = 0; tag < row->depth; tag++)
            client_pool_put(storm.pool, i, "#%u %s\n", tag, request);
    client_pool_read_until(storm.pool, &storm.done, count, deadline());
    end(&storm, values);
    must(storm.done == count, "every request has a reply");
    close_storm(&storm);
}

void storm_unlock(struct overload *overload, const struct overload_row *row,
                  double values[FIGURE_COUNT])
{
    send_burst(overload, row, "UNLOCK free 0123456789012345678901234567890123456789", values);
}

void storm_lock(struct overload *overload, const struct overload_row *row,
                double values[FIGURE_COUNT])
{
    send_burst(overload, row, "LOCK free 2000", values);
}

/* --- without masters --- */

void storm_without_masters(struct overload *overload, const struct overload_row *row,
                           double values[FIGURE_COUNT])
{
    struct storm storm;
    open_storm(&storm, overload, (row->count + EACH - 1) / EACH, EACH);
    for (unsigned i = 0; i < OVERLOAD_MASTERS; i++)
        master_kill(&overload->stage.masters[i]);
    stage_wait_nodes(&overload->stage, "state=up", 0);
    for (unsigned i = 0; i < row->count; i++)
        client_pool_put(storm.pool, i / EACH, "#%u LOCK waited-for-%u 2000 WAIT %d\n", i, i,
                        WAIT_MS);
    client_pool_flush(storm.pool);
    wait_waiting(&storm, row->count);
    overload_watch(overload, 0, 0);
    overload_phase(overload, true);
    client_pool_read_until(storm.pool, &storm.done, UINT64_MAX, clock_ns() + overload->for_ns);
    overload_phase(overload, false);
    overload_watch_end(overload, values);
    overload_set_cost(overload, (uint64_t)(row->count * overload->seconds), values);
    /* Without masters the prober's LOCKs cannot be granted, so their figures mean nothing. */
    values[LOCK_MS] = values[LOCK_FAILED] = (double)NAN;
    close_storm(&storm);
}
