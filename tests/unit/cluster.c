#include "tests/unit/cluster.h"

#include <check.h>
#include <stddef.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/unit/cluster_io.h"
#include "tests/unit/cluster_wire.h"

/* --- time --- */

/* The guard caches whether all nodes vote. Assert that the cache agrees with the state of each
 * node. */
static void check_all_vote(struct cluster *cluster)
{
    bool all = true;
    for (unsigned i = 0; i < cluster->node_count; i++)
        all = all &&
              guard_refuses_vote(&cluster->engine.flights.guard, i, cluster->now_ns) == REASON_NONE;
    if (guard_all_vote(&cluster->engine.flights.guard, cluster->now_ns) != all)
        ck_abort_msg("guard_all_vote() disagrees with the state of the nodes");
}

void cluster_settle(struct cluster *cluster)
{
    bool busy = true;
    while (busy) {
        busy = false;
        for (unsigned i = 0; i < cluster->node_count; i++) {
            struct cluster_master *master = &cluster->masters[i];
            if (!master->hung)
                fake_cron(&master->redis, cluster_clock_us(cluster, i));
            busy = cluster_connect(cluster, i) || busy;
            busy = cluster_serve(cluster, i) || busy;
        }
        check_all_vote(cluster);
        if (engine_wants_flush(&cluster->engine) && !(cluster->lazy && busy)) {
            engine_flush(&cluster->engine, cluster->now_ns);
            busy = true;
        }
    }
    for (unsigned i = 0; i < cluster->node_count && !cluster->zombies_paused; i++)
        cluster_serve_zombie(cluster, i);
}

/* Return the time of the next event: the engine's deadline, the arrival of commands at a master
 * that is not hung, or the end of the command that a master is executing. */
static int64_t next_event_ns(const struct cluster *cluster)
{
    int64_t next_ns = engine_deadline_ns(&cluster->engine);
    for (unsigned i = 0; i < cluster->node_count; i++) {
        int64_t at_ns = pipe_next_ns(&cluster->connections[i][CHANNEL_COMMANDS].pipe);
        next_ns = at_ns < next_ns && !cluster->masters[i].hung ? at_ns : next_ns;
        int64_t busy_ns = cluster->masters[i].busy_ns;
        next_ns = busy_ns > cluster->now_ns && busy_ns < next_ns ? busy_ns : next_ns;
    }
    return next_ns;
}

void cluster_pass_ms(struct cluster *cluster, int64_t ms)
{
    int64_t until_ns = cluster->now_ns + ms * NS_PER_MS;
    cluster_settle(cluster);
    for (;;) {
        int64_t next_ns = next_event_ns(cluster);
        if (next_ns > until_ns)
            break;
        cluster->now_ns = next_ns > cluster->now_ns ? next_ns : cluster->now_ns;
        engine_on_timer(&cluster->engine, cluster->now_ns, cluster->now_ns);
        cluster_settle(cluster);
    }
    cluster->now_ns = until_ns;
}

void cluster_pass_both_ms(struct cluster *cluster, struct cluster *other, int64_t ms)
{
    for (int64_t i = 0; i < ms; i++) {
        cluster_pass_ms(cluster, 1);
        cluster_share(other, cluster);
        other->now_ns -= NS_PER_MS;
        cluster_pass_ms(other, 1);
        cluster_share(cluster, other);
    }
}

/* --- starting and stopping --- */

static void start_engine(struct cluster *cluster, const char *clock_id, bool bootstrap)
{
    struct engine_rules rules = {
        .round = {.node_count = cluster->node_count,
                  .quorum = cluster->node_count / 2 + 1,
                  .node_timeout_ns = 50 * NS_PER_MS,
                  .min_validity_ns = NS_PER_MS,
                  .drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS}},
        .key_prefix = "",
        .cluster = cluster->cluster != NULL ? cluster->cluster : "main",
        .max_ttl_ns = 60 * NS_PER_S,
        .fence_ttl_ns = 3600 * NS_PER_S,
        .max_hold_ns = 300 * NS_PER_S,
        .max_extensions = 5,
        .backoff_min_ns = 5 * NS_PER_MS,
        .backoff_max_ns = 250 * NS_PER_MS,
        .waiters = 10000,
        .waiters_per_resource = 1000,
        .bootstrap = bootstrap,
        .durable = cluster->durable,
        .reset_set = cluster->reset_set,
        .read_only = cluster->read_only,
        .clock_id = clock_id,
    };
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    const struct engine_io io = cluster_io(cluster);
    memcpy(rules.node_names, names, sizeof(names));
    ck_assert(engine_init(&cluster->engine, &rules, &io, cluster->now_ns));
    engine_client_init(&cluster->client, 1);
    for (unsigned i = 0; i < CLUSTER_CLIENTS; i++)
        engine_client_init(&cluster->others[i], 2 + i);
    cluster_pass_ms(cluster, 1);
}

static void init(struct cluster *cluster, unsigned node_count, struct cluster_master *masters)
{
    memset(cluster, 0, offsetof(struct cluster, own));
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            pipe_clear(&cluster->connections[i][channel].pipe);
    cluster->node_count = node_count;
    cluster->masters = masters;
    cluster->now_ns = 1000 * NS_PER_S;
    cluster->random = 1;
    cluster->wall_ns = 1000000000 * NS_PER_S;
}

static void init_masters(struct cluster *cluster, unsigned node_count)
{
    init(cluster, node_count, cluster->own);
    for (unsigned i = 0; i < node_count; i++) {
        struct cluster_master *master = &cluster->own[i];
        master->dead = master->hung = master->mute = false;
        master->delay_ns = master->service_ns = master->busy_ns = 0;
        master->clock_ns = 1000000000 * NS_PER_S;
        fake_init(&master->redis, 1 + 2 * i);
        master->redis.begun_us = master->clock_ns / 1000;
    }
}

void cluster_share(struct cluster *cluster, const struct cluster *other)
{
    ck_assert_ptr_eq(cluster->masters, other->masters);
    cluster->now_ns = other->now_ns;
}

void cluster_join(struct cluster *cluster, const struct cluster *other, const char *clock_id)
{
    init(cluster, other->node_count, other->masters);
    cluster->random = other->random + 1;
    cluster_share(cluster, other);
    start_engine(cluster, clock_id, false);
}

void cluster_init(struct cluster *cluster, unsigned node_count)
{
    init_masters(cluster, node_count);
    start_engine(cluster, "here", true);
    for (unsigned i = 0; i < node_count; i++)
        ck_assert_str_eq(cluster_vote(cluster, i), "-");
}

void cluster_init_unknown(struct cluster *cluster, unsigned node_count)
{
    init_masters(cluster, node_count);
    start_engine(cluster, "here", false);
}

void cluster_restart_engine(struct cluster *cluster, const char *clock_id)
{
    engine_deinit(&cluster->engine);
    cluster_close_all(cluster);
    start_engine(cluster, clock_id, false);
}

void cluster_deinit(struct cluster *cluster)
{
    engine_deinit(&cluster->engine);
    cluster_close_all(cluster);
    cluster_free_connections(cluster);
    for (unsigned i = 0; i < CLUSTER_NODES && cluster->masters == cluster->own; i++)
        fake_free(&cluster->own[i].redis);
}

const char *cluster_vote(const struct cluster *cluster, unsigned node)
{
    return reason_word(
        master_refuses_vote(&cluster->engine.flights.masters[node], cluster->now_ns));
}

/* --- faults of masters --- */

void cluster_hang(struct cluster *cluster, unsigned count, bool hung)
{
    for (unsigned i = 0; i < count; i++)
        cluster->masters[i].hung = hung;
}

void cluster_kill(struct cluster *cluster, unsigned node)
{
    struct cluster_master *master = &cluster->masters[node];
    struct cluster_connection *connection = &cluster->connections[node][CHANNEL_COMMANDS];
    master->dead = true;
    master->hung = false;
    cluster_flush(cluster, node);
    fake_close_all(&master->redis);
    cluster_cut_tracker(cluster, node);
    if (connection->open) {
        connection->open = false;
        engine_on_closed(&cluster->engine, node, CHANNEL_COMMANDS, REASON_DISCONNECTED,
                         cluster->now_ns);
    }
}

void cluster_restart(struct cluster *cluster, unsigned node)
{
    struct cluster_master *master = &cluster->masters[node];
    if (!master->dead)
        cluster_kill(cluster, node);
    master->dead = false;
    fake_start(&master->redis, 100 * (1 + master->wires) + 2 * node);
    master->redis.begun_us = cluster_clock_us(cluster, node);
}

/* --- keys on masters --- */

int64_t cluster_clock_us(const struct cluster *cluster, unsigned node)
{
    return (cluster->now_ns + cluster->masters[node].clock_ns) / 1000;
}

void cluster_flush(struct cluster *cluster, unsigned node)
{
    fake_flush(&cluster->masters[node].redis);
}

void cluster_set(struct cluster *cluster, unsigned node, const char *key, const char *value,
                 int64_t ttl_ms)
{
    fake_set(&cluster->masters[node].redis, key, value, ttl_ms, cluster_clock_us(cluster, node));
}

void cluster_delete(struct cluster *cluster, unsigned node, const char *key)
{
    fake_delete(&cluster->masters[node].redis, key, cluster_clock_us(cluster, node));
}

const char *cluster_value(struct cluster *cluster, unsigned node, const char *key)
{
    const struct fake_key *found =
        fake_find(&cluster->masters[node].redis, key, strlen(key), cluster_clock_us(cluster, node));
    return found != NULL ? found->value : NULL;
}

unsigned cluster_count(struct cluster *cluster, const char *key)
{
    unsigned count = 0;
    for (unsigned i = 0; i < cluster->node_count; i++)
        count += cluster_value(cluster, i, key) != NULL;
    return count;
}

void cluster_occupy(struct cluster *cluster, const char *resource, int64_t ttl_ms)
{
    for (unsigned i = 0; i < cluster->node_count; i++)
        cluster_set(cluster, i, resource, "foreign", ttl_ms);
}

void cluster_vacate(struct cluster *cluster, const char *resource)
{
    for (unsigned i = 0; i < cluster->node_count; i++)
        cluster_delete(cluster, i, resource);
    cluster_settle(cluster);
}

unsigned cluster_commands(const struct cluster *cluster)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < cluster->node_count; i++)
        sum += cluster->masters[i].redis.lock_commands;
    return sum;
}
