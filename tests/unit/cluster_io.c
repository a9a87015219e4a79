#include "tests/unit/cluster_io.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/round/node_set.h"
#include "tests/unit/cluster_wire.h"

static void io_open(void *context, unsigned node, enum channel channel)
{
    struct cluster *cluster = context;
    cluster->connections[node][channel].opening = true;
}

static void io_close(void *context, unsigned node, enum channel channel)
{
    cluster_close(context, node, channel);
}

static void io_write(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                     size_t len)
{
    for (; nodes != 0; nodes = nodes_after_first(nodes))
        cluster_write(context, nodes_first(nodes), channel, bytes, len);
}

/* Replies, pushes, undone requests and broken locks all go to cluster->replies. */
__attribute__((format(printf, 2, 3))) static void record_reply(struct cluster *cluster,
                                                               const char *form, ...)
{
    va_list arguments;
    ck_assert_uint_lt(cluster->reply_count, CLUSTER_REPLIES);
    va_start(arguments, form);
    vsnprintf(cluster->replies[cluster->reply_count++], sizeof(cluster->replies[0]), form,
              arguments);
    va_end(arguments);
}

static void io_reply(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                     const struct reply *answer)
{
    struct cluster *cluster = context;
    char line[LIMIT_REPLY];
    size_t len = reply_format(answer, tag, tag_len, line);
    ck_assert(!client->disconnected);
    client->disconnected = cluster->reply_fails;
    cluster->reply_fails = false;
    if (client->disconnected)
        return;
    record_reply(cluster, "%.*s", (int)(len - 1), line);
}

static void io_undone(void *context, struct engine_client *client, const char *tag, size_t tag_len)
{
    struct cluster *cluster = context;
    (void)client;
    record_reply(cluster, "undone %.*s", (int)tag_len, tag != NULL ? tag : "");
}

static void io_push(void *context, struct engine_client *client, const struct push *push)
{
    struct cluster *cluster = context;
    char line[LIMIT_REPLY];
    size_t len = reply_format_push(push, line);
    ck_assert(!client->disconnected);
    record_reply(cluster, "%.*s", (int)(len - 1), line);
}

static void io_breaking(void *context, const struct engine_client *by,
                        const struct engine_broken *broken)
{
    struct cluster *cluster = context;
    ck_assert_uint_ne(by->id, 0);
    ck_assert_uint_gt(broken->resource_len, 0);
    cluster->breaks++;
}

/* A BREAK appears among the replies as "broken <resource> of <client>". */
static void io_broken(void *context, const struct engine_broken *broken)
{
    struct cluster *cluster = context;
    record_reply(cluster, "broken %.*s of %d", (int)broken->resource_len, broken->resource,
                 (int)broken->owner_id);
}

static void io_link_changed(void *context, unsigned node, enum link_state before)
{
    struct cluster *cluster = context;
    ck_assert_int_ne(cluster->engine.flights.masters[node].link.state, before);
    cluster->link_changes++;
}

static void io_clock_stepped_back(void *context, unsigned node, int64_t back_ns)
{
    struct cluster *cluster = context;
    cluster->stepped_back_ns[node] += back_ns;
}

static void io_vote_changed(void *context, unsigned node, enum reason before, enum reason reason,
                            int64_t now_ns)
{
    const struct cluster *cluster = context;
    ck_assert_int_ne(before, reason);
    ck_assert_int_eq(master_refuses_vote(&cluster->engine.flights.masters[node], now_ns), reason);
    /* Operators are told how long the reason lasts. */
    ck_assert_int_ge(guard_refuses_until_ns(&cluster->engine.flights.guard, node, now_ns), now_ns);
}

static void io_command_refused(void *context, unsigned node, enum reason reason, bool release)
{
    struct cluster *cluster = context;
    (void)node;
    (void)reason;
    cluster->refused_commands++;
    cluster->refused_releases += release;
}

static void io_self_tested(void *context, unsigned node, const char *what, enum reason refused)
{
    struct cluster *cluster = context;
    (void)node;
    ck_assert_ptr_nonnull(what);
    ck_assert_uint_lt(cluster->self_tests, ENGINE_SELF_TESTS);
    cluster->self_test_refusals[cluster->self_tests++] = refused;
}

static void io_lease_found(void *context, unsigned node, unsigned named, const char *lease)
{
    struct cluster *cluster = context;
    (void)node;
    snprintf(cluster->leases[named], sizeof(cluster->leases[named]), "%s", lease);
}

static int64_t io_wall_us(void *context)
{
    const struct cluster *cluster = context;
    return (cluster->now_ns + cluster->wall_ns) / 1000;
}

static void io_random(void *context, void *bytes, size_t len)
{
    struct cluster *cluster = context;
    for (size_t i = 0; i < len; i++) {
        cluster->random = cluster->random * 6364136223846793005 + 1442695040888963407;
        ((unsigned char *)bytes)[i] = (unsigned char)(cluster->random >> 56);
    }
}

struct engine_io cluster_io(struct cluster *cluster)
{
    return (struct engine_io){
        .links = {cluster, io_open, io_close, io_write, io_random},
        .context = cluster,
        .reply = io_reply,
        .undone = io_undone,
        .push = io_push,
        .breaking = io_breaking,
        .broken = io_broken,
        .link_changed = io_link_changed,
        .clock_stepped_back = io_clock_stepped_back,
        .vote_changed = io_vote_changed,
        .command_refused = io_command_refused,
        .self_tested = io_self_tested,
        .lease_found = io_lease_found,
        .wall_us = io_wall_us,
    };
}
