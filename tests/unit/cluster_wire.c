#include "tests/unit/cluster_wire.h"

#include <check.h>

#include "engine/round/node_set.h"

/* The master's session for a connection. NULL if the master has closed it, or has been restarted
 * since. */
static struct fake_session *session_of(struct cluster *cluster, unsigned node,
                                       const struct cluster_connection *connection)
{
    struct fake_master *redis = &cluster->masters[node].redis;
    for (unsigned i = 0; i < redis->session_end; i++)
        if (redis->sessions[i].id != 0 && redis->sessions[i].wire == connection->wire)
            return &redis->sessions[i];
    return NULL;
}

static void end_session(struct cluster *cluster, unsigned node,
                        struct cluster_connection *connection)
{
    struct fake_session *session = session_of(cluster, node, connection);
    if (session != NULL)
        fake_close(&cluster->masters[node].redis, session);
    pipe_clear(&connection->pipe);
}

/* --- opening and closing --- */

static bool connect_channel(struct cluster *cluster, unsigned node, enum channel channel)
{
    struct cluster_master *master = &cluster->masters[node];
    struct cluster_connection *connection = &cluster->connections[node][channel];
    if (!connection->opening)
        return false;
    connection->opening = false;
    if (master->dead) {
        engine_on_closed(&cluster->engine, node, channel, REASON_REFUSED, cluster->now_ns);
        return true;
    }
    struct fake_session *session = fake_accept(&master->redis);
    ck_assert_ptr_nonnull(session);
    session->wire = connection->wire = ++master->wires;
    connection->open = true;
    pipe_clear(&connection->pipe);
    ck_assert(resp_reset(&connection->resp));
    engine_on_connected(&cluster->engine, node, channel, cluster->now_ns);
    return true;
}

bool cluster_connect(struct cluster *cluster, unsigned node)
{
    bool commands = connect_channel(cluster, node, CHANNEL_COMMANDS);
    return connect_channel(cluster, node, CHANNEL_TRACKING) || commands;
}

/* Keep the connection as a zombie: the master reads the rest of its input after everything else. */
static void leave_unread(struct cluster *cluster, unsigned node)
{
    struct cluster_connection *connection = &cluster->connections[node][CHANNEL_COMMANDS];
    struct cluster_connection *zombie = &cluster->zombies[node];
    struct pipe pipe = zombie->pipe;
    end_session(cluster, node, zombie);
    zombie->pipe = connection->pipe;
    zombie->wire = connection->wire;
    connection->pipe = pipe;
    connection->wire = 0;
}

void cluster_close(struct cluster *cluster, unsigned node, enum channel channel)
{
    struct cluster_connection *connection = &cluster->connections[node][channel];
    connection->opening = connection->open = false;
    /* A hung master notices the reset only once it resumes. */
    if (channel == CHANNEL_COMMANDS && cluster->masters[node].hung)
        leave_unread(cluster, node);
    end_session(cluster, node, connection);
}

void cluster_close_all(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->node_count; i++)
        for (unsigned channel = 0; channel < CHANNELS; channel++) {
            struct cluster_connection *connection = &cluster->connections[i][channel];
            connection->opening = connection->open = false;
            end_session(cluster, i, connection);
        }
}

void cluster_free_connections(struct cluster *cluster)
{
    for (unsigned i = 0; i < CLUSTER_NODES; i++) {
        bytes_free(&cluster->zombies[i].pipe.bytes);
        for (unsigned channel = 0; channel < CHANNELS; channel++) {
            bytes_free(&cluster->connections[i][channel].pipe.bytes);
            resp_deinit(&cluster->connections[i][channel].resp);
        }
    }
}

/* --- bytes --- */

void cluster_write(struct cluster *cluster, unsigned node, enum channel channel, const char *bytes,
                   size_t len)
{
    struct cluster_connection *connection = &cluster->connections[node][channel];
    ck_assert(connection->open);
    pipe_add(&connection->pipe, bytes, len);
    pipe_seal(&connection->pipe, connection->pipe.sent,
              cluster->now_ns + cluster->masters[node].delay_ns);
}

/* Parses and delivers the replies as server/masters/node.c does. */
void cluster_feed(struct cluster *cluster, unsigned node, enum channel channel, const char *bytes,
                  size_t len)
{
    struct resp *resp = &cluster->connections[node][channel].resp;
    resp_feed(resp, bytes, len);
    while (resp_next(resp) == RESP_REPLY) {
        unsigned taken = engine_on_replies(&cluster->engine, node, channel, resp->reply,
                                           resp->repeats + 1, cluster->now_ns);
        if (taken == 0)
            return;
        resp_skip(resp, taken - 1);
    }
}

/* Pass the master's replies to the engine or to divert(), unless they are lost. Returns whether
 * there were any. */
static bool deliver_replies(struct cluster *cluster, unsigned node, enum channel channel,
                            struct fake_session *session)
{
    struct bytes said = session->output;
    if (bytes_len(&said) == 0)
        return false;
    session->output = (struct bytes){0};
    if (cluster->connections[node][channel].open && !cluster->masters[node].mute) {
        if (cluster->diverted & nodes_only(node))
            cluster->divert(cluster, node, channel, bytes_at(&said), bytes_len(&said));
        else
            cluster_feed(cluster, node, channel, bytes_at(&said), bytes_len(&said));
    }
    bytes_free(&said);
    return true;
}

static bool serve(struct cluster *cluster, unsigned node, enum channel channel)
{
    struct cluster_master *master = &cluster->masters[node];
    struct cluster_connection *connection = &cluster->connections[node][channel];
    struct fake_session *session = session_of(cluster, node, connection);
    bool served = false;
    if (session == NULL)
        return false;
    pipe_move(&connection->pipe, &session->input, cluster->now_ns);
    if (master->hung)
        return false;
    while (master->busy_ns <= cluster->now_ns &&
           fake_serve_one(&master->redis, session, cluster_clock_us(cluster, node))) {
        served = true;
        if (master->service_ns > 0)
            master->busy_ns = cluster->now_ns + master->service_ns;
        /* divert() gets one reply for each call. */
        if (cluster->diverted & nodes_only(node))
            deliver_replies(cluster, node, channel, session);
    }
    return deliver_replies(cluster, node, channel, session) || served;
}

bool cluster_serve(struct cluster *cluster, unsigned node)
{
    bool commands = serve(cluster, node, CHANNEL_COMMANDS);
    return serve(cluster, node, CHANNEL_TRACKING) || commands;
}

void cluster_serve_zombie(struct cluster *cluster, unsigned node)
{
    struct cluster_master *master = &cluster->masters[node];
    struct cluster_connection *zombie = &cluster->zombies[node];
    struct fake_session *session = session_of(cluster, node, zombie);
    if (session == NULL)
        return;
    pipe_move(&zombie->pipe, &session->input, cluster->now_ns);
    if (master->hung)
        return;
    fake_serve(&master->redis, session, cluster_clock_us(cluster, node));
    if (session->killed || pipe_next_ns(&zombie->pipe) == INT64_MAX)
        end_session(cluster, node, zombie);
}

/* --- faults of connections --- */

size_t cluster_unread(struct cluster *cluster, unsigned node)
{
    const struct fake_session *session = session_of(cluster, node, &cluster->zombies[node]);
    return session != NULL
               ? bytes_len(&session->input) + bytes_len(&cluster->zombies[node].pipe.bytes)
               : 0;
}

void cluster_cut(struct cluster *cluster, unsigned node)
{
    cluster->connections[node][CHANNEL_COMMANDS].open = false;
    leave_unread(cluster, node);
    engine_on_closed(&cluster->engine, node, CHANNEL_COMMANDS, REASON_DISCONNECTED,
                     cluster->now_ns);
}

void cluster_cut_tracker(struct cluster *cluster, unsigned node)
{
    struct cluster_connection *tracker = &cluster->connections[node][CHANNEL_TRACKING];
    if (!tracker->open)
        return;
    tracker->open = false;
    end_session(cluster, node, tracker);
    engine_on_closed(&cluster->engine, node, CHANNEL_TRACKING, REASON_DISCONNECTED,
                     cluster->now_ns);
}
