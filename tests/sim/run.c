#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/locks/hold.h"
#include "protocol/units.h"
#include "tests/sim/sim.h"

#define BEGIN_NS (1000 * NS_PER_S)
#define CRON_NS  (100 * NS_PER_MS)

/* After the last fault: the time until all links are up and pending releases are confirmed. */
#define RECONNECT_NS (4 * NS_PER_S)
/* After the quarantine: the time until every master votes and every lock can be granted. If a
 * master has lost its data, what it had reported about the names of others counts that much longer
 * than its quarantine lasts (keeps_leases() in guard.c). */
#define RECOVERY_NS (2 * NS_PER_S + GUARD_DAEMON_TIMEOUT_NS)
/* LAST_WAIT_MS: how much longer than the old key of its lock a client of the final check is allowed
 * to wait. A key from the attack can still exist for max_ttl: a key whose master's clock stepped
 * back lives longer, but when a client wants the lock, a daemon cuts the TTL of the key to
 * max_ttl. */
enum { LAST_WAIT_MS = 1000, LAST_TTL_MS = 300 };

/* In turns.c the masters' replies reach a far daemon late, so the margin of the validity must be
 * greater than twice the daemon's round trip. */
enum { TURNS_MAX_TTL_MS = 5000, TURNS_MARGIN_MS = 200 };

/* Any number: it makes the draws for semaphores and slow ends differ from the others. */
#define SEMAPHORES_SEED UINT64_C(0x5e3a9f0d4)

/* --- clocks, random numbers, trace --- */

int64_t clock_at(const struct sim_clock *clock, int64_t true_ns)
{
    int64_t passed_ns = true_ns - clock->true_ns;
    return clock->shown_ns + passed_ns + passed_ns * clock->rate_ppm / 1000000;
}

int64_t clock_when(const struct sim_clock *clock, int64_t shown_ns)
{
    int64_t left_ns = shown_ns - clock->shown_ns;
    int64_t at_ns =
        clock->true_ns + left_ns - left_ns / (1000000 + clock->rate_ppm) * clock->rate_ppm;
    while (clock_at(clock, at_ns) < shown_ns)
        at_ns += 1000;
    return at_ns;
}

void clock_set_rate(struct sim_clock *clock, int64_t true_ns, int64_t rate_ppm)
{
    clock->shown_ns = clock_at(clock, true_ns);
    clock->true_ns = true_ns;
    clock->rate_ppm = rate_ppm;
}

unsigned sim_below(struct sim *sim, unsigned count)
{
    return prng_below(&sim->prng, count);
}

int64_t sim_between(struct sim *sim, int64_t least_ns, int64_t most_ns)
{
    int64_t range_ns = most_ns - least_ns;
    if (sim_below(sim, 3) != 0)
        range_ns /= 1 + sim_below(sim, 20);
    return least_ns + (range_ns > 0 ? (int64_t)(prng_draw(&sim->prng) % (uint64_t)range_ns) : 0);
}

struct sim_name sim_name(const struct sim *sim, unsigned resource)
{
    struct sim_name name;
    name.len = (size_t)snprintf(name.text, sizeof(name.text), sim->semaphores ? "r#%c" : "r%c",
                                (char)('0' + resource));
    return name;
}

unsigned sim_resource(const struct sim *sim, const char *name, size_t len)
{
    unsigned resource = (unsigned)(name[len - 1] - '0');
    if (resource >= SIM_RESOURCES)
        return SIM_RESOURCES;
    const struct sim_name same = sim_name(sim, resource);
    return len == same.len && memcmp(name, same.text, len) == 0 ? resource : SIM_RESOURCES;
}

void sim_note(struct sim *sim, const char *form, ...)
{
    va_list arguments;
    if (sim->trace == NULL)
        return;
    fprintf(sim->trace, "%10.6f ", (double)(sim->now_ns - BEGIN_NS) / 1e9);
    va_start(arguments, form);
    vfprintf(sim->trace, form, arguments);
    va_end(arguments);
}

/* --- setting up the cluster --- */

/* A random rate, positive or negative. 100 ppm is normal for quartz; more is a fault. */
static int64_t some_rate(struct sim *sim, int64_t most_ppm)
{
    return (int64_t)sim_below(sim, (unsigned)(2 * most_ppm + 1)) - most_ppm;
}

static void make_clock(struct sim *sim, struct sim_clock *clock, int64_t shown_ns, int64_t rate_ppm)
{
    *clock = (struct sim_clock){
        .true_ns = sim->now_ns, .shown_ns = shown_ns, .rate_ppm = some_rate(sim, rate_ppm)};
}

/* The context of the fake masters' callbacks: which master of which simulation. */
struct master_place {
    struct sim *sim;
    unsigned master;
    unsigned server; /* 0 or 1, as in sim_master.server */
};

static struct master_place master_places[SIM_MASTERS][2];

static void on_set(void *context, const char *key, size_t key_len, const char *value, size_t len,
                   int64_t ends_ms)
{
    const struct master_place *place = context;
    checker_on_set(place->sim, place->master, place->server, key, key_len, value, len, ends_ms);
}

/* The first id of a run and of a session of the other servers. No schedule gets that far. */
enum { OTHER_IDS = 1000000, OTHER_SESSIONS = 1000000 };

static void make_master(struct sim *sim, unsigned index, int64_t rate_ppm)
{
    static const char *const versions[] = {
        NULL, "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2",
        "redis_version:8.6.3"};
    struct sim_master *master = &sim->masters[index];
    int64_t wall_ns = INT64_C(1700000000) * NS_PER_S + sim_between(sim, 0, 20 * NS_PER_S);
    make_clock(sim, &master->clock, wall_ns, rate_ppm);
    sim->ids += 2;
    fake_init(&master->redis, sim->ids);
    fake_init(&master->other, OTHER_IDS + sim->ids);
    master->other.last_session = OTHER_SESSIONS;
    for (unsigned server = 0; server < 2; server++) {
        struct fake_master *redis = server == 0 ? &master->redis : &master->other;
        master_places[index][server] = (struct master_place){sim, index, server};
        redis->watcher = &master_places[index][server];
        redis->on_set = on_set;
        master->asked_ns[server] = 0;
    }
    master->server = 0;
    master->redis.version = versions[sim_below(sim, sizeof(versions) / sizeof(versions[0]))];
    master->durable = sim_below(sim, 3) == 0;
    master->redis.fsync = master->durable ? "always" : NULL;
    master->other.version = master->redis.version;
    master->other.fsync = master->redis.fsync;
    master->dead = master->hung = master->rewound = false;
    master->steps = STEPS_UNDECIDED;
    master->data_loss_ns = master->ends_early_ns = sim->bootstrapped ? 0 : sim->now_ns;
    for (unsigned owner = 0; owner < SIM_OWNERS; owner++) {
        master->latency_ns[owner] = 20000 + sim_below(sim, 500000);
        master->blocked_ns[owner][0] = master->blocked_ns[owner][1] = 0;
    }
    event_queue_add(&sim->event_queue, sim->now_ns + sim_below(sim, CRON_NS), EVENT_CRON, index, 0);
}

static void make_daemon(struct sim *sim, unsigned index, int64_t rate_ppm)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    int64_t room_ns = sim->max_ttl_ms * NS_PER_MS * 8 / 10;
    for (unsigned node = 0; node < SIM_MASTERS; node++)
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            if (daemon->resps[node][channel].reader == NULL)
                resp_init(&daemon->resps[node][channel]);
    make_clock(sim, &daemon->clock, (int64_t)(1 + sim_below(sim, 100000)) * NS_PER_S, rate_ppm);
    daemon->wall_ahead_ns = INT64_C(1700000000) * NS_PER_S + sim->now_ns - daemon->clock.shown_ns +
                            sim_between(sim, 0, room_ns) - room_ns / 2;
    daemon->host = index;
    daemon->alive = false;
    daemon->paused_at_ns = 0;
}

static void choose(struct sim *sim)
{
    static const int64_t max_ttls_ms[] = {1000, 1000, 2000, 2000, 3000, 3000, 8000, 8000};
    sim->node_count = sim_below(sim, 3) == 0 ? 5 : 3;
    sim->daemon_count = 1 + sim_below(sim, SIM_DAEMONS);
    sim->client_count = 2 + sim_below(sim, SIM_FEW_CLIENTS - 1);
    sim->resource_count =
        1 + sim_below(sim, sim_below(sim, 4) == 0 ? SIM_RESOURCES : SIM_FEW_RESOURCES);
    sim->fenced = sim_below(sim, 2) == 0 ? 3 : 1;
    /* A crowd sends fewer extra requests. Otherwise the checker would take their rounds for rounds
     * without a pause. */
    sim->extra_request_in = bounds_are_crowded() ? 6 : sim_below(sim, 2) == 0 ? 2 : 0;
    sim->max_ttl_ms = max_ttls_ms[sim_below(sim, 8)];
    sim->fence_ttl_ms = sim->max_ttl_ms * (1 + sim_below(sim, 4));
    sim->bootstrapped = sim_below(sim, 10) != 0;
    /* Drawn apart, so that schedules without semaphores and slow ends are those of before there
     * were any. */
    struct prng own = {.state = sim->seed ^ SEMAPHORES_SEED};
    sim->semaphores = prng_below(&own, 3) == 0 && sim->resource_count > 1;
    bool slow_ends = prng_below(&own, 3) == 0;
    sim->attack_ns = sim_between(sim, 1 * NS_PER_S, 8 * NS_PER_S);
    fault_plan(sim);
    sim->slow_ends = slow_ends && fault_may(sim, FAULT_CLIENTS);
    /* The validity allows for this rate. With a small allowance, a step of a clock breaks a lock
     * sooner. */
    sim->drift = (struct drift){
        .rate_ppm = fault_may(sim, FAULT_RATES) || sim_below(sim, 2) == 0 ? 10000 : 1000,
        .margin_ns = SIM_MARGIN_MS * NS_PER_MS,
    };
    sim->limits = (struct request_limits){
        .ttl_min_ms = 20,
        .ttl_max_ms = sim->max_ttl_ms,
        .hold_ttl_min_ms = hold_shortest_ms(&sim->drift, SIM_NODE_TIMEOUT_MS * NS_PER_MS),
        .key_prefix = "",
    };
    if (bounds_are_crowded())
        sim->client_count += SIM_CLIENTS - SIM_FEW_CLIENTS;
}

static void make(struct sim *sim)
{
    event_queue_clear(&sim->event_queue);
    history_init(&sim->history);
    sleepers_clear(sim);
    net_clear(sim);
    connection_clear(sim);
    int64_t rate_ppm = fault_may(sim, FAULT_RATES) ? 4000 : 100;
    for (unsigned i = 0; i < sim->node_count; i++)
        make_master(sim, i, rate_ppm);
    for (unsigned i = 0; i < sim->daemon_count; i++)
        make_daemon(sim, i, rate_ppm);
    for (unsigned i = 0; i < sim->client_count; i++)
        make_clock(sim, &sim->clients[i].clock, sim->now_ns, rate_ppm);
    make_clock(sim, &sim->foreign.clock, sim->now_ns, rate_ppm);
}

/* --- events --- */

static void on_cron(struct sim *sim, unsigned index)
{
    struct sim_master *master = &sim->masters[index];
    if (!master->dead && !master->hung) {
        fake_cron(&master->redis, master_wall_us(sim, index));
        fake_cron(&master->other, master_wall_us(sim, index));
        net_send_output(sim, index);
    }
    event_queue_add(&sim->event_queue, sim->now_ns + CRON_NS, EVENT_CRON, index, 0);
}

static void dispatch(struct sim *sim, const struct event *event)
{
    switch (event->kind) {
    case EVENT_CONNECT:
    case EVENT_TO_SERVER:
    case EVENT_RESET:
        net_on_event(sim, event);
        break;
    case EVENT_CONNECTED:
    case EVENT_TO_CLIENT:
    case EVENT_CLOSED:
        if (!wire_exists(sim, event->subject, event->generation))
            break;
        if (sim->wires[event->subject].owner == SIM_FOREIGN)
            foreign_on_event(sim, event);
        else
            daemon_on_event(sim, event);
        break;
    case EVENT_REQUEST:
    case EVENT_HANGUP:
    case EVENT_TIMER:
    case EVENT_PASS:
        daemon_on_event(sim, event);
        break;
    case EVENT_REPLY:
    case EVENT_ACT:
        if (sim->turns != NULL)
            sim_turns_on_event(sim, event);
        else
            client_on_event(sim, event);
        break;
    case EVENT_CRON:
        on_cron(sim, event->subject);
        break;
    case EVENT_FOREIGN:
        foreign_on_event(sim, event);
        break;
    case EVENT_STRIKE:
        fault_strike(sim);
        break;
    case EVENT_REPOINT:
        fault_repoint(sim);
        break;
    case EVENT_FAULT_END:
        fault_end(sim, event);
        break;
    }
}

static void advance(struct sim *sim, int64_t ns)
{
    int64_t until_ns = sim->now_ns + ns;
    while (event_queue_next_ns(&sim->event_queue) <= until_ns && sim->violation == NULL) {
        struct event event = event_queue_take(&sim->event_queue);
        sim->now_ns = event.at_ns;
        sim->tally->counts[COUNT_EVENTS]++;
        dispatch(sim, &event);
        sleepers_sample(sim);
    }
    if (sim->violation == NULL)
        sim->now_ns = until_ns;
}

/* --- a schedule --- */

/* Start the daemons. A bootstrap declares that no lock is held; without it, no daemon grants a lock
 * for max_ttl. */
static void set_up(struct sim *sim)
{
    if (sim->bootstrapped) {
        daemon_start(sim, 0, true);
        advance(sim, 100 * NS_PER_MS);
        daemon_die(sim, 0, true);
        advance(sim, 10 * NS_PER_MS);
    }
    for (unsigned i = 0; i < sim->daemon_count; i++)
        daemon_start(sim, i, false);
    advance(sim, sim_between(sim, 10 * NS_PER_MS, 1500 * NS_PER_MS));
}

static void attack(struct sim *sim)
{
    for (unsigned i = 0; i < sim->client_count; i++)
        client_start(sim, i);
    foreign_start(sim);
    fault_strike(sim);
    if (sim->repointed != SIM_MASTERS)
        fault_repoint(sim);
    advance(sim, sim->attack_ns);
}

static void recover(struct sim *sim)
{
    sim_note(sim, "all faults end\n");
    sim->recovering = true;
    fault_end_all(sim);
    for (unsigned i = 0; i < sim->node_count; i++)
        clock_set_rate(&sim->masters[i].clock, sim->now_ns, some_rate(sim, 100));
    for (unsigned i = 0; i < sim->daemon_count; i++)
        clock_set_rate(&sim->daemons[i].clock, sim->now_ns, some_rate(sim, 100));
    for (unsigned i = 0; i < sim->client_count; i++)
        client_retire(sim, i);
    advance(sim, RECONNECT_NS);
    checker_leftovers(sim);
    /* A daemon that suspects its own clock first waits for max_ttl, then checks the masters. */
    advance(sim, RECOVERY_NS + sim->max_ttl_ms * 21 / 10 * NS_PER_MS);
}

/* Advance until the client's request is answered, for at most most_ms. True if it has the lock. */
static bool wait_for_answer(struct sim *sim, unsigned client, int64_t most_ms)
{
    int64_t latest_ns = sim->now_ns + most_ms * NS_PER_MS;
    while (sim->now_ns < latest_ns && sim->violation == NULL &&
           sim->clients[client].state == CLIENT_ASKING)
        advance(sim, 20 * NS_PER_MS);
    return sim->clients[client].has_lock;
}

/* A client gets the lock through one daemon and falls silent. Two clients wait for the lock at the
 * next daemon (the first is the silent one, which has forgotten its lock). The first one must get
 * the lock when it expires, and the second one as soon as the first one releases it. */
static void check_waiters(struct sim *sim, unsigned daemon)
{
    unsigned resource = daemon % sim->resource_count;
    client_ask_last(sim, 0, daemon, resource, LAST_TTL_MS);
    if (!wait_for_answer(sim, 0, sim->max_ttl_ms + LAST_WAIT_MS)) {
        checker_violation(sim, "no grant through daemon %u after the last fault", daemon);
        return;
    }
    client_forget(sim, 0);
    client_ask_last(sim, 0, (daemon + 1) % sim->daemon_count, resource, LAST_TTL_MS);
    advance(sim, 20 * NS_PER_MS); /* so that the next request arrives second */
    client_ask_last(sim, 1, (daemon + 1) % sim->daemon_count, resource, LAST_TTL_MS);
    bool granted = wait_for_answer(sim, 0, LAST_TTL_MS + LAST_WAIT_MS);
    if (granted) {
        /* Wait until the rounds of the first LOCK are over. With fences, each LOCK can take two
         * rounds, and tight limits may have no room for all of them and a release. */
        advance(sim, 20 * NS_PER_MS);
        client_release(sim, 0);
        granted = wait_for_answer(sim, 1, LAST_WAIT_MS);
    }
    if (granted)
        client_release(sim, 1);
    else
        checker_violation(sim, "daemon %u forgot a waiter", (daemon + 1) % sim->daemon_count);
    wait_for_answer(sim, 1, LAST_WAIT_MS);
}

/* Every daemon grants locks again. */
static void check_grants(struct sim *sim)
{
    sim->finishing = true;
    for (unsigned i = 0; i < sim->daemon_count && sim->violation == NULL; i++) {
        /* Let the last replies of a release arrive. */
        advance(sim, 300 * NS_PER_MS);
        checker_end(sim, i);
        check_waiters(sim, i);
    }
}

static void end_all(struct sim *sim)
{
    for (unsigned i = 0; i < sim->daemon_count; i++) {
        struct sim_daemon *daemon = &sim->daemons[i];
        if (!daemon->alive)
            continue;
        sim->tally->counts[COUNT_HANDOVERS] += daemon->engine.stats.handovers;
        connection_lose_daemon(sim, i);
        engine_deinit(&daemon->engine);
        daemon->alive = false;
    }
    for (unsigned i = 0; i < sim->node_count; i++) {
        sim->tally->counts[COUNT_BATCH] += sim->masters[i].redis.runs[REDIS_SCRIPT_RELEASES];
        sim->tally->counts[COUNT_NATIVE] += sim->masters[i].redis.native;
    }
}

static void begin(struct sim *sim, uint64_t seed, uint64_t faults, FILE *trace,
                  struct sim_tally *tally)
{
    sim->seed = seed;
    sim->prng.state = seed;
    sim->trace = trace;
    sim->faults = faults;
    sim->tally = tally;
    sim->now_ns = BEGIN_NS;
    sim->recovering = sim->finishing = false;
    sim->turns = NULL;
    sim->repointed = sim->unreached = SIM_MASTERS;
    sim->ids = 1;
    sim->order = 0;
    sim->token_count = 0;
    sim->foreign_doubt_ns = 0;
    sim->violation = NULL;
    bounds_draw(seed);
    choose(sim);
}

static const char *end(struct sim *sim)
{
    sim->tally->counts[COUNT_VIRTUAL_MS] += (uint64_t)((sim->now_ns - BEGIN_NS) / NS_PER_MS);
    const char *violation = sim->violation;
    end_all(sim);
    return violation;
}

const char *sim_run(struct sim *sim, uint64_t seed, const struct sim_options *options,
                    struct sim_tally *tally)
{
    begin(sim, seed, options->faults, options->trace, tally);
    make(sim);
    set_up(sim);
    attack(sim);
    recover(sim);
    check_grants(sim);
    return end(sim);
}

const char *sim_run_turns(struct sim *sim, uint64_t seed, struct sim_turns *turns,
                          struct sim_tally *tally)
{
    begin(sim, seed, 0, NULL, tally);
    sim->turns = turns;
    sim->semaphores = sim->slow_ends = false;
    sim->node_count = 3;
    sim->daemon_count = turns->daemons;
    sim->resource_count = 1;
    sim->client_count = 0;
    for (unsigned i = 0; i < turns->daemons; i++)
        sim->client_count += turns->clients[i];
    sim->bootstrapped = true;
    sim->max_ttl_ms = sim->limits.ttl_max_ms = TURNS_MAX_TTL_MS;
    sim->drift.margin_ns = TURNS_MARGIN_MS * NS_PER_MS;
    make(sim);
    for (unsigned i = 0; i < turns->daemons; i++)
        for (unsigned master = 0; master < sim->node_count; master++)
            sim->masters[master].latency_ns[i] = turns->round_trips_ns[i] / 2;
    set_up(sim);
    advance(sim, 2 * TURNS_MAX_TTL_MS * NS_PER_MS);
    memset(turns->grants, 0, sizeof(turns->grants));
    unsigned client = 0;
    for (unsigned i = 0; i < turns->daemons; i++)
        for (unsigned k = 0; k < turns->clients[i]; k++)
            sim_turns_start(sim, client++, i);
    advance(sim, turns->for_ns);
    return end(sim);
}

void sim_free(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_DAEMONS; i++)
        for (unsigned node = 0; node < SIM_MASTERS; node++)
            for (unsigned channel = 0; channel < CHANNELS; channel++)
                resp_deinit(&sim->daemons[i].resps[node][channel]);
    for (unsigned i = 0; i < SIM_WIRES; i++) {
        bytes_free(&sim->wires[i].to_server.bytes);
        bytes_free(&sim->wires[i].to_client.bytes);
    }
    for (unsigned i = 0; i < SIM_MASTERS; i++) {
        fake_free(&sim->masters[i].redis);
        fake_free(&sim->masters[i].other);
    }
}
