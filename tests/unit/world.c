#include "tests/unit/world.h"

#include <check.h>
#include <stddef.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/unit/world_io.h"
#include "tests/unit/world_wire.h"

/* --- time --- */

/* What the guard remembers of all nodes is what it finds of each. */
static void check_memory(struct world *world)
{
    bool all = true;
    for (unsigned i = 0; i < world->node_count; i++)
        all = all &&
              guard_refuses_vote(&world->engine.flights.guard, i, world->now_ns) == REASON_NONE;
    if (guard_all_vote(&world->engine.flights.guard, world->now_ns) != all)
        ck_abort_msg("the guard remembers votes that are not so any more");
}

void world_settle(struct world *world)
{
    bool busy = true;
    while (busy) {
        busy = false;
        for (unsigned i = 0; i < world->node_count; i++) {
            struct world_master *master = &world->masters[i];
            if (!master->hung)
                fake_cron(&master->redis, world_clock_us(world, i));
            busy = world_connect(world, i) || busy;
            busy = world_serve(world, i) || busy;
        }
        check_memory(world);
        if (engine_wants_flush(&world->engine) && !(world->lazy && busy)) {
            engine_flush(&world->engine, world->now_ns);
            busy = true;
        }
    }
    for (unsigned i = 0; i < world->node_count && !world->zombies_wait; i++)
        world_serve_zombie(world, i);
}

/* The engine's next deadline, or the next arrival. */
static int64_t next_event_ns(const struct world *world)
{
    int64_t next_ns = engine_deadline_ns(&world->engine);
    for (unsigned i = 0; i < world->node_count; i++) {
        int64_t at_ns = pipe_next_ns(&world->connections[i][CHANNEL_COMMANDS].pipe);
        next_ns = at_ns < next_ns && !world->masters[i].hung ? at_ns : next_ns;
    }
    return next_ns;
}

void world_pass_ms(struct world *world, int64_t ms)
{
    int64_t until_ns = world->now_ns + ms * NS_PER_MS;
    world_settle(world);
    for (;;) {
        int64_t next_ns = next_event_ns(world);
        if (next_ns > until_ns)
            break;
        world->now_ns = next_ns > world->now_ns ? next_ns : world->now_ns;
        engine_on_timer(&world->engine, world->now_ns);
        world_settle(world);
    }
    world->now_ns = until_ns;
}

/* --- how it begins --- */

static void start_engine(struct world *world, const char *clock_id, bool bootstrap)
{
    struct engine_rules rules = {
        .round = {.node_count = world->node_count,
                  .quorum = world->node_count / 2 + 1,
                  .node_timeout_ns = 50 * NS_PER_MS,
                  .min_validity_ns = NS_PER_MS,
                  .drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS}},
        .key_prefix = "",
        .cluster = world->cluster != NULL ? world->cluster : "world",
        .max_ttl_ns = 60 * NS_PER_S,
        .fence_ttl_ns = 3600 * NS_PER_S,
        .max_hold_ns = 300 * NS_PER_S,
        .max_extensions = 5,
        .backoff_min_ns = 5 * NS_PER_MS,
        .backoff_max_ns = 250 * NS_PER_MS,
        .waiters = 10000,
        .waiters_per_resource = 1000,
        .bootstrap = bootstrap,
        .durable = world->durable,
        .reset_set = world->reset_set,
        .read_only = world->read_only,
        .clock_id = clock_id,
    };
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    const struct engine_io io = world_io(world);
    memcpy(rules.node_names, names, sizeof(names));
    ck_assert(engine_init(&world->engine, &rules, &io, world->now_ns));
    engine_client_init(&world->client, 1);
    for (unsigned i = 0; i < WORLD_CLIENTS; i++)
        engine_client_init(&world->others[i], 2 + i);
    world_pass_ms(world, 1);
}

static void init(struct world *world, unsigned node_count, struct world_master *masters)
{
    memset(world, 0, offsetof(struct world, own));
    for (unsigned i = 0; i < WORLD_NODES; i++)
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            pipe_clear(&world->connections[i][channel].pipe);
    world->node_count = node_count;
    world->masters = masters;
    world->now_ns = 1000 * NS_PER_S;
    world->random = 1;
    world->wall_ns = 1000000000 * NS_PER_S;
}

static void init_masters(struct world *world, unsigned node_count)
{
    init(world, node_count, world->own);
    for (unsigned i = 0; i < node_count; i++) {
        struct world_master *master = &world->own[i];
        master->dead = master->hung = master->mute = false;
        master->delay_ns = 0;
        master->clock_ns = 1000000000 * NS_PER_S;
        fake_init(&master->redis, 1 + 2 * i);
        master->redis.begun_us = master->clock_ns / 1000;
    }
}

void world_share(struct world *world, const struct world *other)
{
    ck_assert_ptr_eq(world->masters, other->masters);
    world->now_ns = other->now_ns;
}

void world_join(struct world *world, const struct world *other, const char *clock_id)
{
    init(world, other->node_count, other->masters);
    world->random = other->random + 1;
    world_share(world, other);
    start_engine(world, clock_id, false);
}

void world_init(struct world *world, unsigned node_count)
{
    init_masters(world, node_count);
    start_engine(world, "here", true);
    for (unsigned i = 0; i < node_count; i++)
        ck_assert_str_eq(world_vote(world, i), "-");
}

void world_init_unknown(struct world *world, unsigned node_count)
{
    init_masters(world, node_count);
    start_engine(world, "here", false);
}

void world_restart_engine(struct world *world, const char *clock_id)
{
    engine_deinit(&world->engine);
    world_close_all(world);
    start_engine(world, clock_id, false);
}

void world_deinit(struct world *world)
{
    engine_deinit(&world->engine);
    world_close_all(world);
    world_free_connections(world);
    for (unsigned i = 0; i < WORLD_NODES && world->masters == world->own; i++)
        fake_free(&world->own[i].redis);
}

const char *world_vote(const struct world *world, unsigned node)
{
    return reason_word(engine_refuses_vote(&world->engine, node, world->now_ns));
}

/* --- what befalls masters --- */

void world_hang(struct world *world, unsigned count, bool hung)
{
    for (unsigned i = 0; i < count; i++)
        world->masters[i].hung = hung;
}

void world_kill(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    struct world_connection *connection = &world->connections[node][CHANNEL_COMMANDS];
    master->dead = true;
    master->hung = false;
    world_flush(world, node);
    fake_close_all(&master->redis);
    world_cut_tracker(world, node);
    if (connection->open) {
        connection->open = false;
        engine_on_closed(&world->engine, node, CHANNEL_COMMANDS, REASON_DISCONNECTED,
                         world->now_ns);
    }
}

void world_restart(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    if (!master->dead)
        world_kill(world, node);
    master->dead = false;
    fake_start(&master->redis, 100 * (1 + master->wires) + 2 * node);
    master->redis.begun_us = world_clock_us(world, node);
}

/* --- what they keep --- */

int64_t world_clock_us(const struct world *world, unsigned node)
{
    return (world->now_ns + world->masters[node].clock_ns) / 1000;
}

void world_flush(struct world *world, unsigned node)
{
    fake_flush(&world->masters[node].redis);
}

void world_set(struct world *world, unsigned node, const char *key, const char *value,
               int64_t ttl_ms)
{
    fake_set(&world->masters[node].redis, key, value, ttl_ms, world_clock_us(world, node));
}

void world_delete(struct world *world, unsigned node, const char *key)
{
    fake_delete(&world->masters[node].redis, key, world_clock_us(world, node));
}

const char *world_value(struct world *world, unsigned node, const char *key)
{
    const struct fake_key *found =
        fake_find(&world->masters[node].redis, key, strlen(key), world_clock_us(world, node));
    return found != NULL ? found->value : NULL;
}

unsigned world_count(struct world *world, const char *key)
{
    unsigned count = 0;
    for (unsigned i = 0; i < world->node_count; i++)
        count += world_value(world, i, key) != NULL;
    return count;
}

void world_occupy(struct world *world, const char *resource, int64_t ttl_ms)
{
    for (unsigned i = 0; i < world->node_count; i++)
        world_set(world, i, resource, "foreign", ttl_ms);
}

void world_vacate(struct world *world, const char *resource)
{
    for (unsigned i = 0; i < world->node_count; i++)
        world_delete(world, i, resource);
    world_settle(world);
}

unsigned world_commands(const struct world *world)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < world->node_count; i++)
        sum += world->masters[i].redis.lock_commands;
    return sum;
}
