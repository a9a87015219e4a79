#include "tests/unit/world.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/unit/world_io.h"
#include "tests/unit/world_tracking.h"
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
            busy = world_connect(world, i) || busy;
            busy = world_serve(world, i, &master->current) || busy;
            busy = world_serve(world, i, &master->tracker) || busy;
            busy = world_tell(world, i) || busy;
        }
        check_memory(world);
        if (engine_wants_flush(&world->engine) && !(world->lazy && busy)) {
            engine_flush(&world->engine, world->now_ns);
            busy = true;
        }
    }
    for (unsigned i = 0; i < world->node_count && !world->zombies_wait; i++)
        while (world_serve(world, i, &world->masters[i].zombie))
            continue;
}

/* The engine's next deadline, or the next arrival. */
static int64_t next_event_ns(const struct world *world)
{
    int64_t next_ns = engine_deadline_ns(&world->engine);
    for (unsigned i = 0; i < world->node_count; i++) {
        int64_t at_ns = world_arrival_ns(&world->masters[i]);
        next_ns = at_ns < next_ns ? at_ns : next_ns;
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
        .looks_on = world->looks_on,
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

/* All but the bytes of the inboxes, of which there are many. */
static void clear(struct world *world)
{
    memset(&world->engine, 0, sizeof(world->engine));
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        struct world_master *master = &world->masters[i];
        memset(master, 0, offsetof(struct world_master, connecting));
        memset((char *)master + offsetof(struct world_master, connecting), 0,
               offsetof(struct world_master, tracker) - offsetof(struct world_master, connecting));
        world_clear_inbox(&master->tracker);
        world_clear_inbox(&master->current);
        world_clear_inbox(&master->zombie);
    }
    size_t rest = offsetof(struct world, node_count);
    memset((char *)world + rest, 0, sizeof(*world) - rest);
}

static void init_masters(struct world *world, unsigned node_count)
{
    clear(world);
    world->node_count = node_count;
    world->now_ns = 1000 * NS_PER_S;
    world->random = 1;
    world->wall_ns = 1000000000 * NS_PER_S;
    for (unsigned i = 0; i < node_count; i++) {
        snprintf(world->masters[i].run_id, sizeof(world->masters[i].run_id), "%040u", i);
        snprintf(world->masters[i].replid, sizeof(world->masters[i].replid), "%040u", 10 + i);
        world->masters[i].clock_ns = 1000000000 * NS_PER_S;
    }
}

void world_share(struct world *world, const struct world *other)
{
    world->now_ns = other->now_ns;
    for (unsigned i = 0; i < world->node_count; i++)
        memcpy(&world->masters[i], &other->masters[i], offsetof(struct world_master, connecting));
}

void world_join(struct world *world, const struct world *other, const char *clock_id)
{
    init_masters(world, other->node_count);
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
    for (unsigned i = 0; i < world->node_count; i++) {
        world->masters[i].current.open = false;
        world->masters[i].current.len = 0;
        world->masters[i].connecting = false;
        world_untrack(&world->masters[i]);
        world_close_tracker(&world->masters[i]);
    }
    start_engine(world, clock_id, false);
}

void world_deinit(struct world *world)
{
    engine_deinit(&world->engine);
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
    master->dead = true;
    master->hung = false;
    master->zombie.len = 0;
    master->current.len = 0;
    memset(master->keys, 0, sizeof(master->keys));
    world_cut_tracker(world, node);
    if (master->current.open) {
        master->current.open = false;
        world_untrack(master);
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
    master->next_client_id = 0;
    master->run_id[0]++;
    master->begun_ns = world->now_ns;
    master->replid[0]++;
}

void world_flush(struct world *world, unsigned node)
{
    memset(world->masters[node].keys, 0, sizeof(world->masters[node].keys));
}
