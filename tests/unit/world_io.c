#include "tests/unit/world_io.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/round/node_set.h"
#include "tests/unit/world_wire.h"

static void io_open(void *context, unsigned node, enum channel channel)
{
    struct world *world = context;
    world->connections[node][channel].opening = true;
}

static void io_close(void *context, unsigned node, enum channel channel)
{
    world_close(context, node, channel);
}

static void io_write(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                     size_t len)
{
    for (; nodes != 0; nodes = nodes_behind_first(nodes))
        world_write(context, nodes_first(nodes), channel, bytes, len);
}

/* What a client, or the log, is told comes to the replies. */
__attribute__((format(printf, 2, 3))) static void hear(struct world *world, const char *form, ...)
{
    va_list arguments;
    ck_assert_uint_lt(world->reply_count, WORLD_REPLIES);
    va_start(arguments, form);
    vsnprintf(world->replies[world->reply_count++], sizeof(world->replies[0]), form, arguments);
    va_end(arguments);
}

static void io_reply(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                     const struct reply *answer)
{
    struct world *world = context;
    char line[LIMIT_REPLY];
    size_t len = reply_format(answer, tag, tag_len, line);
    ck_assert(!client->gone);
    client->gone = world->deaf;
    world->deaf = false;
    if (client->gone)
        return;
    hear(world, "%.*s", (int)(len - 1), line);
}

static void io_undone(void *context, struct engine_client *client, const char *tag, size_t tag_len)
{
    struct world *world = context;
    (void)client;
    hear(world, "undone %.*s", (int)tag_len, tag != NULL ? tag : "");
}

static void io_push(void *context, struct engine_client *client, const struct push *push)
{
    struct world *world = context;
    char line[LIMIT_REPLY];
    size_t len = reply_format_push(push, line);
    ck_assert(!client->gone);
    hear(world, "%.*s", (int)(len - 1), line);
}

static void io_breaking(void *context, const struct engine_client *by,
                        const struct engine_broken *broken)
{
    struct world *world = context;
    ck_assert_uint_ne(by->id, 0);
    ck_assert_uint_gt(broken->resource_len, 0);
    world->breaks++;
}

/* As if it was a push: "broken <resource> of <client>". */
static void io_broken(void *context, const struct engine_broken *broken)
{
    struct world *world = context;
    hear(world, "broken %.*s of %d", (int)broken->resource_len, broken->resource,
         (int)broken->owner_id);
}

static void io_link_changed(void *context, unsigned node, enum link_state before)
{
    struct world *world = context;
    ck_assert_int_ne(world->engine.flights.masters[node].link.state, before);
    world->link_changes++;
}

static void io_clock_stepped_back(void *context, unsigned node, int64_t back_ns)
{
    struct world *world = context;
    world->stepped_back_ns[node] += back_ns;
}

static void io_vote_changed(void *context, unsigned node, enum reason before, enum reason reason,
                            int64_t now_ns)
{
    const struct world *world = context;
    ck_assert_int_ne(before, reason);
    ck_assert_int_eq(engine_refuses_vote(&world->engine, node, now_ns), reason);
    /* Operators are told for how long. */
    ck_assert_int_ge(guard_refuses_until_ns(&world->engine.flights.guard, node, now_ns), now_ns);
}

static void io_command_refused(void *context, unsigned node, enum reason reason, bool release)
{
    struct world *world = context;
    (void)node;
    (void)reason;
    world->refused_commands++;
    world->refused_releases += release;
}

static void io_tried(void *context, unsigned node, const char *what, enum reason refused)
{
    struct world *world = context;
    (void)node;
    ck_assert_ptr_nonnull(what);
    ck_assert_uint_lt(world->trials, ENGINE_SELF_TESTS);
    world->trial_refused[world->trials++] = refused;
}

static void io_leased(void *context, unsigned node, unsigned named, const char *lease)
{
    struct world *world = context;
    (void)node;
    snprintf(world->leases[named], sizeof(world->leases[named]), "%s", lease);
}

static int64_t io_wall_us(void *context)
{
    const struct world *world = context;
    return (world->now_ns + world->wall_ns) / 1000;
}

static void io_random(void *context, void *bytes, size_t len)
{
    struct world *world = context;
    for (size_t i = 0; i < len; i++) {
        world->random = world->random * 6364136223846793005 + 1442695040888963407;
        ((unsigned char *)bytes)[i] = (unsigned char)(world->random >> 56);
    }
}

struct engine_io world_io(struct world *world)
{
    return (struct engine_io){
        .context = world,
        .open = io_open,
        .close = io_close,
        .write = io_write,
        .reply = io_reply,
        .undone = io_undone,
        .push = io_push,
        .breaking = io_breaking,
        .broken = io_broken,
        .link_changed = io_link_changed,
        .clock_stepped_back = io_clock_stepped_back,
        .vote_changed = io_vote_changed,
        .command_refused = io_command_refused,
        .tried = io_tried,
        .leased = io_leased,
        .wall_us = io_wall_us,
        .random = io_random,
    };
}
