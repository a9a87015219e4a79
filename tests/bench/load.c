#include "tests/bench/load.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <unistd.h>

#include "protocol/units.h"
#include "tests/bench/clock.h"
#include "tests/bench/must.h"
#include "tests/bench/usage.h"

enum { TOKEN_LEN = 40, RESOURCE_LEN = 32, WAIT_LEN = 40, QUEUE_WAIT_MS = 60000, TTL_MS = 2000 };

/* With per_s, the requests that have become due are sent once in this time. */
#define STEP_NS NS_PER_MS
/* The last replies come within this time after the longest WAIT. */
#define DRAIN_NS (60 * NS_PER_S)

enum slot_state { SLOT_IDLE, SLOT_LOCKING, SLOT_HOLDING, SLOT_UNLOCKING, SLOT_DONE };

/* A place for one request in flight. */
struct slot {
    STAILQ_ENTRY(slot) next_idle;
    STAILQ_ENTRY(slot) next_holder;
    unsigned connection;
    enum slot_state state;
    bool polls;
    char resource[RESOURCE_LEN];
    char granted[RESOURCE_LEN]; /* the resource to unlock; with semaphore, the granted slot */
    int64_t release_ns;
    char token[TOKEN_LEN];
    int64_t since_ns;
    uint64_t turns;
};

struct load {
    const struct load_plan *plan;
    struct load_result *result;
    struct client_pool *pool;
    struct slot *slots;
    unsigned slot_count;
    unsigned running;         /* slots that are not done */
    STAILQ_HEAD(, slot) idle; /* with per_s: slots without a request */
    uint64_t offered;         /* with per_s: requests that were due so far */
    unsigned ttl_ms;
    unsigned wait_ms;
    char wait[WAIT_LEN];         /* " WAIT 60000", after " SLOTS 10" */
    STAILQ_HEAD(, slot) holders; /* with hold_ns: the slots that hold a lock, in order of release */
    int64_t released_ns; /* with one_resource: time of the last UNLOCK; 0: none, or the lock is
                            granted again */
    int64_t started_ns;
    int64_t now_ns;  /* time just before the input of this pass was read */
    int64_t hang_ns; /* time to stop plan->hangs; INT64_MAX: none, or done */
    bool ending;
    unsigned to_send; /* requests that wait to be sent */
};

static void put(struct load *load, struct slot *slot, int64_t now_ns)
{
    unsigned tag = (unsigned)(slot - load->slots);
    if (load->plan->pings)
        client_pool_put(load->pool, slot->connection, "#%u PING\n", tag);
    else if (slot->state == SLOT_UNLOCKING)
        client_pool_put(load->pool, slot->connection, "#%u UNLOCK %s %.*s\n", tag, slot->granted,
                        TOKEN_LEN, slot->token);
    else
        client_pool_put(load->pool, slot->connection, "#%u LOCK %s %u%s\n", tag, slot->resource,
                        load->ttl_ms, slot->polls ? "" : load->wait);
    load->to_send++;
    slot->since_ns = now_ns;
}

static void unlock(struct load *load, struct slot *slot, int64_t now_ns)
{
    slot->state = SLOT_UNLOCKING;
    if (load->plan->one_resource && load->plan->semaphore == 0)
        load->released_ns = now_ns;
    put(load, slot, now_ns);
}

static void lock(struct load *load, struct slot *slot, int64_t now_ns)
{
    slot->state = SLOT_LOCKING;
    put(load, slot, now_ns);
}

/* The slot has no request any more. Its next LOCK follows at once; with per_s, when a request is
 * due; after the end of the measurement, not at all. */
static void go_on(struct load *load, struct slot *slot, int64_t now_ns)
{
    if (load->ending) {
        slot->state = SLOT_DONE;
        load->running--;
    } else if (load->plan->per_s > 0) {
        slot->state = SLOT_IDLE;
        STAILQ_INSERT_TAIL(&load->idle, slot, next_idle);
    } else {
        lock(load, slot, now_ns);
    }
}

/* With per_s: send the requests that are due. */
static void offer(struct load *load, int64_t now_ns)
{
    uint64_t due = (uint64_t)((double)(now_ns - load->started_ns) / 1e9 * load->plan->per_s);
    while (!load->ending && load->offered < due) {
        struct slot *slot = STAILQ_FIRST(&load->idle);
        load->offered++;
        if (slot == NULL) {
            load->result->unsent++;
            continue;
        }
        STAILQ_REMOVE_HEAD(&load->idle, next_idle);
        lock(load, slot, now_ns);
    }
}

static void on_granted(struct load *load, struct slot *slot, const char *token, int64_t now_ns)
{
    struct load_result *result = load->result;
    int64_t took_ns = now_ns - slot->since_ns;
    memcpy(slot->token, token, TOKEN_LEN);
    snprintf(slot->granted, RESOURCE_LEN, "%s",
             load->plan->semaphore > 0 ? strrchr(token, ' ') + 1 : slot->resource);
    if (!load->ending) {
        spread_add(&result->acquire, took_ns);
        slot->turns++;
        result->late += load->plan->per_s > 0 && took_ns > load->wait_ms * NS_PER_MS;
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
    slot->release_ns = now_ns + load->plan->hold_ns;
    STAILQ_INSERT_TAIL(&load->holders, slot, next_holder);
}

/* A reply such as "#12 OK 6c7b... 29689 0 -" or "#12 OK". */
static void on_line(void *arg, unsigned connection, char *line)
{
    struct load *load = arg;
    int64_t now_ns = load->now_ns;
    char *rest;
    (void)connection;
    must(line[0] == '#', "an answer of the daemon has a tag");
    unsigned tag = (unsigned)strtoul(line + 1, &rest, 10);
    must(tag < load->slot_count, "an answer of the daemon has a tag of ours");
    struct slot *slot = &load->slots[tag];
    bool ok = strncmp(rest, " OK", 3) == 0 || strcmp(rest, " PONG") == 0;
    if (ok && slot->state == SLOT_LOCKING) {
        if (load->plan->pings)
            unlock(load, slot, now_ns);
        else
            on_granted(load, slot, rest + 4, now_ns);
        return;
    }
    struct load_result *result = load->result;
    result->all_pairs += ok;
    if (!load->ending)
        result->pairs += ok;
    if (!ok && slot->polls)
        result->polled++;
    else if (!ok && result->failed++ == 0)
        snprintf(result->failure, LOAD_ANSWER, "%.*s", LOAD_ANSWER - 1, line);
    go_on(load, slot, now_ns);
}

static void open_all(struct load *load)
{
    const struct load_plan *plan = load->plan;
    struct client_pool_plan pool = {.host = plan->host,
                                    .path = plan->path,
                                    .connections = plan->connections,
                                    .depth = plan->depth,
                                    .on_line = on_line,
                                    .arg = load};
    memcpy(pool.ports, plan->ports, sizeof(pool.ports));
    load->pool = client_pool_open(&pool);
    load->slot_count = plan->connections * plan->depth;
    ck_assert_uint_le(load->slot_count, LOAD_SLOTS);
    load->slots = calloc(load->slot_count, sizeof(*load->slots));
    ck_assert_ptr_nonnull(load->slots);
    for (unsigned i = 0; i < load->slot_count; i++) {
        struct slot *slot = &load->slots[i];
        slot->connection = i % plan->connections;
        slot->polls = i < plan->pollers;
        if (plan->one_resource)
            snprintf(slot->resource, RESOURCE_LEN, "bench");
        else
            snprintf(slot->resource, RESOURCE_LEN, "bench-%u", i);
    }
    load->running = load->slot_count;
    load->ttl_ms = plan->ttl_ms != 0 ? plan->ttl_ms : TTL_MS;
    load->wait_ms = plan->wait_ms != 0 || !plan->one_resource ? plan->wait_ms : QUEUE_WAIT_MS;
    size_t len = 0;
    if (plan->semaphore > 0)
        len = (size_t)snprintf(load->wait, WAIT_LEN, " SLOTS %u", plan->semaphore);
    if (load->wait_ms != 0)
        snprintf(load->wait + len, WAIT_LEN - len, " WAIT %u", load->wait_ms);
    STAILQ_INIT(&load->idle);
    STAILQ_INIT(&load->holders);
}

/* The time of the next action that no reply triggers. */
static int64_t next_ns(const struct load *load, int64_t now_ns)
{
    int64_t next = load->started_ns + load->plan->for_ns;
    /* After the end of the measurement only replies are awaited. */
    if (next <= now_ns)
        next = now_ns + NS_PER_S;
    const struct slot *holder = STAILQ_FIRST(&load->holders);
    if (holder != NULL && holder->release_ns < next)
        next = holder->release_ns;
    if (load->hang_ns < next)
        next = load->hang_ns;
    if (load->plan->per_s > 0 && !load->ending && now_ns + STEP_NS < next)
        next = now_ns + STEP_NS;
    return next > now_ns ? next : now_ns;
}

static void write_all(struct load *load)
{
    pid_t stopped = load->plan->in_sync_with;
    if (stopped != 0 && load->to_send < load->running)
        return;
    if (stopped != 0)
        kill(stopped, SIGSTOP);
    client_pool_flush(load->pool);
    load->to_send = 0;
    if (stopped != 0)
        kill(stopped, SIGCONT);
}

static void pass(struct load *load)
{
    int64_t now_ns = clock_ns();
    struct slot *holder = STAILQ_FIRST(&load->holders);
    now_ns = client_pool_wait(load->pool,
                              load->ending && holder != NULL ? 0 : next_ns(load, now_ns) - now_ns);
    if (now_ns >= load->hang_ns) {
        kill(load->plan->hangs, SIGSTOP);
        load->hang_ns = INT64_MAX;
    }
    while ((holder = STAILQ_FIRST(&load->holders)) != NULL &&
           (now_ns >= holder->release_ns || load->ending)) {
        STAILQ_REMOVE_HEAD(&load->holders, next_holder);
        unlock(load, holder, now_ns);
    }
    load->now_ns = now_ns;
    client_pool_read(load->pool);
    if (load->plan->per_s > 0)
        offer(load, now_ns);
    write_all(load);
}

/* The index of every `step`-th request in flight, from the first on. */
static double fairness(const struct load *load, unsigned first, unsigned step)
{
    double sum = 0, squares = 0;
    unsigned count = 0;
    for (unsigned i = first; i < load->slot_count; i += step, count++) {
        double turns = (double)load->slots[i].turns;
        sum += turns;
        squares += turns * turns;
    }
    return squares > 0 ? sum * sum / (count * squares) : 0;
}

/* The lowest index of the clients of one daemon. The connections use the daemons in turns, and so
 * do the requests, if the number of connections is a multiple of that of the daemons. */
static double fairness_within(const struct load *load)
{
    unsigned daemons = 0;
    double lowest = 1;
    while (daemons < LOAD_DAEMONS && load->plan->ports[daemons] != 0)
        daemons++;
    if (daemons == 0 || load->plan->connections % daemons != 0)
        return fairness(load, 0, 1);
    for (unsigned i = 0; i < daemons; i++) {
        double index = fairness(load, i, daemons);
        lowest = index < lowest ? index : lowest;
    }
    return lowest;
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
    if (plan->at_most_ns > 0 && now_ns >= load->started_ns + plan->at_most_ns)
        return true;
    return now_ns >= load->started_ns + plan->for_ns && pairs >= plan->min_pairs;
}

/* End the measurement. Afterwards locks are only released. */
static void end(struct load *load, int64_t now_ns, int64_t cpu_ns)
{
    struct load_result *result = load->result;
    load->ending = true;
    result->ended_ns = now_ns;
    result->seconds = (double)(now_ns - load->started_ns) / 1e9;
    result->client_ns = usage_cpu_ns(getpid()) - cpu_ns;
    result->jain = fairness(load, 0, 1);
    result->jain_within = fairness_within(load);
    result->least = least_share(load);
    if (load->plan->on_phase != NULL)
        load->plan->on_phase(load->plan->arg, false);
    for (unsigned i = 0; i < load->slot_count; i++) {
        struct slot *slot = &load->slots[i];
        if (slot->state == SLOT_LOCKING && now_ns - slot->since_ns > result->longest_ns)
            result->longest_ns = now_ns - slot->since_ns;
        if (slot->state == SLOT_IDLE)
            go_on(load, slot, now_ns);
    }
}

void load_run(const struct load_plan *plan, struct load_result *result)
{
    struct load *load = calloc(1, sizeof(*load));
    ck_assert_ptr_nonnull(load);
    memset(result, 0, sizeof(*result));
    load->plan = plan;
    load->result = result;
    open_all(load);
    /* The timer slack of the kernel would lengthen hold_ns. */
    prctl(PR_SET_TIMERSLACK, 1);
    if (plan->on_phase != NULL)
        plan->on_phase(plan->arg, true);
    int64_t cpu_ns = usage_cpu_ns(getpid());
    load->started_ns = clock_ns();
    load->hang_ns = plan->hangs != 0 ? load->started_ns + plan->for_ns / 2 : INT64_MAX;
    for (unsigned i = 0; i < load->slot_count; i++)
        go_on(load, &load->slots[i], load->started_ns);
    write_all(load);
    while (load->running > 0) {
        pass(load);
        int64_t now_ns = clock_ns();
        if (!load->ending && is_over(load, now_ns))
            end(load, now_ns, cpu_ns);
        must(!load->ending || now_ns < result->ended_ns + load->wait_ms * NS_PER_MS + DRAIN_NS,
             "the daemon answers every request");
    }
    client_pool_close(load->pool);
    free(load->slots);
    free(load);
}
