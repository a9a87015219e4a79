#include "tests/bench/load.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/units.h"
#include "tests/bench/clock.h"
#include "tests/bench/must.h"
#include "tests/bench/usage.h"
#include "tests/bench/wire.h"

enum { BUFFER = 65536, LINE_MAX_LEN = 160, TOKEN_LEN = 40, RESOURCE_LEN = 32 };

enum slot_state { SLOT_LOCKING, SLOT_HOLDING, SLOT_UNLOCKING, SLOT_DONE };

/* A place for one request in flight. */
struct slot {
    struct connection *connection;
    enum slot_state state;
    char resource[RESOURCE_LEN];
    char token[TOKEN_LEN];
    int64_t since_ns;
    uint64_t turns;
};

struct connection {
    int fd;
    struct wire_lines input;
    char output[BUFFER];
    size_t output_len;
    bool dirty; /* has output from this pass */
};

struct load {
    const struct load_plan *plan;
    struct load_result *result;
    struct connection *connections;
    struct slot slots[LOAD_SLOTS];
    unsigned slot_count;
    unsigned running;    /* slots that are not done */
    struct slot *holder; /* with one_resource and hold_ns: the slot that holds the lock */
    int64_t release_ns;
    int64_t released_ns; /* with one_resource: time of the last UNLOCK; 0: none, or the lock is
                            granted again */
    int64_t started_ns;
    int64_t now_ns;  /* time just before the input of this pass was read */
    int64_t hang_ns; /* time to stop plan->hangs; INT64_MAX: none, or done */
    bool ending;
    unsigned to_send; /* requests that wait to be sent */
};

static void write_out(struct connection *connection)
{
    wire_send(connection->fd, connection->output, connection->output_len);
    connection->output_len = 0;
    connection->dirty = false;
}

static void put(struct load *load, struct slot *slot, int64_t now_ns)
{
    struct connection *connection = slot->connection;
    unsigned tag = (unsigned)(slot - load->slots);
    if (connection->output_len + LINE_MAX_LEN > BUFFER)
        write_out(connection);
    char *to = connection->output + connection->output_len;
    int len;
    if (slot->state == SLOT_UNLOCKING)
        len = sprintf(to, "#%u UNLOCK %s %.*s\n", tag, slot->resource, TOKEN_LEN, slot->token);
    else
        len = sprintf(to, "#%u LOCK %s 2000%s\n", tag, slot->resource,
                      load->plan->one_resource ? " WAIT 60000" : "");
    connection->output_len += (size_t)len;
    connection->dirty = true;
    load->to_send++;
    slot->since_ns = now_ns;
}

static void unlock(struct load *load, struct slot *slot, int64_t now_ns)
{
    slot->state = SLOT_UNLOCKING;
    if (load->plan->one_resource)
        load->released_ns = now_ns;
    put(load, slot, now_ns);
}

static void lock(struct load *load, struct slot *slot, int64_t now_ns)
{
    if (load->ending) {
        slot->state = SLOT_DONE;
        load->running--;
        return;
    }
    slot->state = SLOT_LOCKING;
    put(load, slot, now_ns);
}

static void on_granted(struct load *load, struct slot *slot, const char *token, int64_t now_ns)
{
    struct load_result *result = load->result;
    int64_t took_ns = now_ns - slot->since_ns;
    memcpy(slot->token, token, TOKEN_LEN);
    if (!load->ending) {
        spread_add(&result->acquire, took_ns);
        slot->turns++;
        if (took_ns > result->longest_ns)
            result->longest_ns = took_ns;
        if (load->released_ns != 0)
            spread_add(&result->handover, now_ns - load->released_ns);
    }
    load->released_ns = 0;
    if (load->plan->hold_ns == 0 || load->ending) {
        unlock(load, slot, now_ns);
        return;
    }
    slot->state = SLOT_HOLDING;
    load->holder = slot;
    load->release_ns = now_ns + load->plan->hold_ns;
}

/* A reply such as "#12 OK 6c7b... 29689 0 -" or "#12 OK". */
static void on_line(void *arg, char *line)
{
    struct load *load = arg;
    int64_t now_ns = load->now_ns;
    char *rest;
    must(line[0] == '#', "an answer of the daemon has a tag");
    unsigned tag = (unsigned)strtoul(line + 1, &rest, 10);
    must(tag < load->slot_count, "an answer of the daemon has a tag of ours");
    struct slot *slot = &load->slots[tag];
    bool ok = strncmp(rest, " OK", 3) == 0;
    if (ok && slot->state == SLOT_LOCKING) {
        on_granted(load, slot, rest + 4, now_ns);
        return;
    }
    struct load_result *result = load->result;
    result->all_pairs += ok;
    if (!load->ending)
        result->pairs += ok;
    if (!ok && result->failed++ == 0)
        snprintf(result->failure, LOAD_ANSWER, "%.*s", LOAD_ANSWER - 1, line);
    lock(load, slot, now_ns);
}

static void read_in(struct load *load, struct connection *connection)
{
    must(wire_read_lines(connection->fd, &connection->input, on_line, load),
         "the daemon keeps its connections");
}

static int connect_unix(const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    snprintf(where.sun_path, sizeof(where.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&where, sizeof(where)), 0);
    return fd;
}

static void connect_one(const struct load_plan *plan, struct connection *connection, int port,
                        int epoll)
{
    connection->fd = plan->path != NULL ? connect_unix(plan->path) : wire_connect(plan->host, port);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event);
}

static void open_all(struct load *load, int epoll)
{
    const struct load_plan *plan = load->plan;
    unsigned daemons = 1;
    while (daemons < LOAD_DAEMONS && plan->ports[daemons] != 0)
        daemons++;
    load->slot_count = plan->connections * plan->depth;
    ck_assert_uint_le(load->slot_count, LOAD_SLOTS);
    load->connections = calloc(plan->connections, sizeof(*load->connections));
    ck_assert_ptr_nonnull(load->connections);
    for (unsigned i = 0; i < plan->connections; i++)
        connect_one(plan, &load->connections[i], plan->ports[i % daemons], epoll);
    for (unsigned i = 0; i < load->slot_count; i++) {
        struct slot *slot = &load->slots[i];
        slot->connection = &load->connections[i % plan->connections];
        if (plan->one_resource)
            snprintf(slot->resource, RESOURCE_LEN, "bench");
        else
            snprintf(slot->resource, RESOURCE_LEN, "bench-%u", i);
    }
    load->running = load->slot_count;
}

/* The time of the next action that no reply triggers. */
static int64_t next_ns(const struct load *load, int64_t now_ns)
{
    int64_t next = load->started_ns + load->plan->for_ns;
    /* After the end of the measurement only replies are awaited. */
    if (next <= now_ns)
        next = now_ns + NS_PER_S;
    if (load->holder != NULL && load->release_ns < next)
        next = load->release_ns;
    if (load->hang_ns < next)
        next = load->hang_ns;
    return next > now_ns ? next : now_ns;
}

static void write_all(struct load *load)
{
    pid_t stopped = load->plan->in_step;
    if (stopped != 0 && load->to_send < load->running)
        return;
    if (stopped != 0)
        kill(stopped, SIGSTOP);
    for (unsigned i = 0; i < load->plan->connections; i++)
        if (load->connections[i].dirty)
            write_out(&load->connections[i]);
    load->to_send = 0;
    if (stopped != 0)
        kill(stopped, SIGCONT);
}

static void pass(struct load *load, int epoll)
{
    struct epoll_event events[LOAD_SLOTS];
    int64_t now_ns = clock_ns();
    int64_t wait_ns = load->ending && load->holder != NULL ? 0 : next_ns(load, now_ns) - now_ns;
    const struct timespec wait = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
    int count = epoll_pwait2(epoll, events, LOAD_SLOTS, &wait, NULL);
    now_ns = clock_ns();
    if (now_ns >= load->hang_ns) {
        kill(load->plan->hangs, SIGSTOP);
        load->hang_ns = INT64_MAX;
    }
    if (load->holder != NULL && (now_ns >= load->release_ns || load->ending)) {
        struct slot *slot = load->holder;
        load->holder = NULL;
        unlock(load, slot, now_ns);
    }
    load->now_ns = now_ns;
    for (int i = 0; i < count; i++)
        read_in(load, events[i].data.ptr);
    write_all(load);
}

static double fairness(const struct load *load)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < load->slot_count; i++) {
        double turns = (double)load->slots[i].turns;
        sum += turns;
        squares += turns * turns;
    }
    return squares > 0 ? sum * sum / (load->slot_count * squares) : 0;
}

static double least_share(const struct load *load)
{
    uint64_t least = UINT64_MAX, sum = 0;
    for (unsigned i = 0; i < load->slot_count; i++) {
        sum += load->slots[i].turns;
        least = load->slots[i].turns < least ? load->slots[i].turns : least;
    }
    return sum > 0 ? (double)least * load->slot_count / (double)sum : 0;
}

static bool is_over(const struct load *load, int64_t now_ns)
{
    const struct load_plan *plan = load->plan;
    uint64_t pairs = load->result->pairs;
    if (plan->max_pairs > 0 && pairs >= plan->max_pairs)
        return true;
    return now_ns >= load->started_ns + plan->for_ns && pairs >= plan->min_pairs;
}

/* End the measurement. Afterwards locks are only released. */
static void end(struct load *load, int64_t now_ns, int64_t cpu_ns)
{
    struct load_result *result = load->result;
    load->ending = true;
    result->seconds = (double)(now_ns - load->started_ns) / 1e9;
    result->client_ns = usage_cpu_ns(getpid()) - cpu_ns;
    result->jain = fairness(load);
    result->least = least_share(load);
    for (unsigned i = 0; i < load->slot_count; i++) {
        const struct slot *slot = &load->slots[i];
        if (slot->state == SLOT_LOCKING && now_ns - slot->since_ns > result->longest_ns)
            result->longest_ns = now_ns - slot->since_ns;
    }
}

void load_run(const struct load_plan *plan, struct load_result *result)
{
    struct load *load = calloc(1, sizeof(*load));
    ck_assert_ptr_nonnull(load);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    memset(result, 0, sizeof(*result));
    load->plan = plan;
    load->result = result;
    open_all(load, epoll);
    /* The timer slack of the kernel would lengthen hold_ns. */
    prctl(PR_SET_TIMERSLACK, 1);
    int64_t cpu_ns = usage_cpu_ns(getpid());
    load->started_ns = clock_ns();
    load->hang_ns = plan->hangs != 0 ? load->started_ns + plan->for_ns / 2 : INT64_MAX;
    for (unsigned i = 0; i < load->slot_count; i++)
        lock(load, &load->slots[i], load->started_ns);
    write_all(load);
    while (load->running > 0) {
        pass(load, epoll);
        int64_t now_ns = clock_ns();
        if (!load->ending && is_over(load, now_ns))
            end(load, now_ns, cpu_ns);
    }
    for (unsigned i = 0; i < plan->connections; i++)
        close(load->connections[i].fd);
    close(epoll);
    free(load->connections);
    free(load);
}
