#include "tests/unit/world_wire.h"

#include <check.h>

#include "engine/round/node_set.h"

/* Those that the master has closed, or that were opened to the process before, have none. */
static struct fake_session *session_of(struct world *world, unsigned node,
                                       const struct world_connection *connection)
{
    struct fake_master *redis = &world->masters[node].redis;
    for (unsigned i = 0; i < redis->session_end; i++)
        if (redis->sessions[i].id != 0 && redis->sessions[i].wire == connection->wire)
            return &redis->sessions[i];
    return NULL;
}

static void end_session(struct world *world, unsigned node, struct world_connection *connection)
{
    struct fake_session *session = session_of(world, node, connection);
    if (session != NULL)
        fake_close(&world->masters[node].redis, session);
    pipe_clear(&connection->pipe);
}

/* --- open and closed --- */

static bool connect_channel(struct world *world, unsigned node, enum channel channel)
{
    struct world_master *master = &world->masters[node];
    struct world_connection *connection = &world->connections[node][channel];
    if (!connection->opening)
        return false;
    connection->opening = false;
    if (master->dead) {
        engine_on_closed(&world->engine, node, channel, REASON_REFUSED, world->now_ns);
        return true;
    }
    struct fake_session *session = fake_accept(&master->redis);
    ck_assert_ptr_nonnull(session);
    session->wire = connection->wire = ++master->wires;
    connection->open = true;
    pipe_clear(&connection->pipe);
    ck_assert(resp_reset(&connection->resp));
    engine_on_connected(&world->engine, node, channel, world->now_ns);
    return true;
}

bool world_connect(struct world *world, unsigned node)
{
    bool commands = connect_channel(world, node, CHANNEL_COMMANDS);
    return connect_channel(world, node, CHANNEL_TRACKING) || commands;
}

/* The master reads what it can still get, once all else is done. */
static void leave_unread(struct world *world, unsigned node)
{
    struct world_connection *connection = &world->connections[node][CHANNEL_COMMANDS];
    struct world_connection *zombie = &world->zombies[node];
    struct pipe pipe = zombie->pipe;
    end_session(world, node, zombie);
    zombie->pipe = connection->pipe;
    zombie->wire = connection->wire;
    connection->pipe = pipe;
    connection->wire = 0;
}

void world_close(struct world *world, unsigned node, enum channel channel)
{
    struct world_connection *connection = &world->connections[node][channel];
    connection->opening = connection->open = false;
    /* A master that hangs does not see the reset before it goes on. */
    if (channel == CHANNEL_COMMANDS && world->masters[node].hung)
        leave_unread(world, node);
    end_session(world, node, connection);
}

void world_close_all(struct world *world)
{
    for (unsigned i = 0; i < world->node_count; i++)
        for (unsigned channel = 0; channel < CHANNELS; channel++) {
            struct world_connection *connection = &world->connections[i][channel];
            connection->opening = connection->open = false;
            end_session(world, i, connection);
        }
}

void world_free_connections(struct world *world)
{
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        bytes_free(&world->zombies[i].pipe.bytes);
        for (unsigned channel = 0; channel < CHANNELS; channel++) {
            bytes_free(&world->connections[i][channel].pipe.bytes);
            resp_deinit(&world->connections[i][channel].resp);
        }
    }
}

/* --- bytes --- */

void world_write(struct world *world, unsigned node, enum channel channel, const char *bytes,
                 size_t len)
{
    struct world_connection *connection = &world->connections[node][channel];
    ck_assert(connection->open);
    pipe_add(&connection->pipe, bytes, len);
    pipe_seal(&connection->pipe, connection->pipe.sent,
              world->now_ns + world->masters[node].delay_ns);
}

/* As server/masters/node.c does it. */
void world_feed(struct world *world, unsigned node, enum channel channel, const char *bytes,
                size_t len)
{
    struct resp *resp = &world->connections[node][channel].resp;
    resp_feed(resp, bytes, len);
    while (resp_next(resp) == RESP_REPLY) {
        unsigned taken = engine_on_replies(&world->engine, node, channel, resp->reply,
                                           resp->again + 1, world->now_ns);
        if (taken == 0)
            return;
        resp_skip(resp, taken - 1);
    }
}

/* What the master says goes to the engine, unless it is lost; did it say anything? */
static bool hear(struct world *world, unsigned node, enum channel channel,
                 struct fake_session *session)
{
    struct bytes said = session->output;
    if (bytes_len(&said) == 0)
        return false;
    session->output = (struct bytes){0};
    if (world->connections[node][channel].open && !world->masters[node].mute) {
        if (world->diverted & nodes_only(node))
            world->divert(world, node, channel, bytes_at(&said), bytes_len(&said));
        else
            world_feed(world, node, channel, bytes_at(&said), bytes_len(&said));
    }
    bytes_free(&said);
    return true;
}

static bool serve(struct world *world, unsigned node, enum channel channel)
{
    struct world_master *master = &world->masters[node];
    struct world_connection *connection = &world->connections[node][channel];
    struct fake_session *session = session_of(world, node, connection);
    bool served = false;
    if (session == NULL)
        return false;
    pipe_move(&connection->pipe, &session->input, world->now_ns);
    if (master->hung)
        return false;
    while (fake_serve_one(&master->redis, session, world_clock_us(world, node))) {
        served = true;
        /* One answer at a time. */
        if (world->diverted & nodes_only(node))
            hear(world, node, channel, session);
    }
    return hear(world, node, channel, session) || served;
}

bool world_serve(struct world *world, unsigned node)
{
    bool commands = serve(world, node, CHANNEL_COMMANDS);
    return serve(world, node, CHANNEL_TRACKING) || commands;
}

void world_serve_zombie(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    struct world_connection *zombie = &world->zombies[node];
    struct fake_session *session = session_of(world, node, zombie);
    if (session == NULL)
        return;
    pipe_move(&zombie->pipe, &session->input, world->now_ns);
    if (master->hung)
        return;
    fake_serve(&master->redis, session, world_clock_us(world, node));
    if (session->killed || pipe_next_ns(&zombie->pipe) == INT64_MAX)
        end_session(world, node, zombie);
}

/* --- what befalls connections --- */

size_t world_unread(struct world *world, unsigned node)
{
    const struct fake_session *session = session_of(world, node, &world->zombies[node]);
    return session != NULL
               ? bytes_len(&session->input) + bytes_len(&world->zombies[node].pipe.bytes)
               : 0;
}

void world_cut(struct world *world, unsigned node)
{
    world->connections[node][CHANNEL_COMMANDS].open = false;
    leave_unread(world, node);
    engine_on_closed(&world->engine, node, CHANNEL_COMMANDS, REASON_DISCONNECTED, world->now_ns);
}

void world_cut_tracker(struct world *world, unsigned node)
{
    struct world_connection *tracker = &world->connections[node][CHANNEL_TRACKING];
    if (!tracker->open)
        return;
    tracker->open = false;
    end_session(world, node, tracker);
    engine_on_closed(&world->engine, node, CHANNEL_TRACKING, REASON_DISCONNECTED, world->now_ns);
}
