/*
 * The functions of struct engine_io in the daemon. Through them the engine sends commands to
 * masters and replies to clients, causes log lines about masters, and gets the wall clock and
 * random bytes.
 */
#include <stddef.h>

#include "server/clock.h"
#include "server/masters/connections.h"
#include "server/server.h"

static void io_open(void *context, unsigned node, enum channel channel)
{
    struct server *server = context;
    node_open(&server->connections.nodes[node][channel]);
}

static void io_close(void *context, unsigned node, enum channel channel)
{
    struct server *server = context;
    node_close(&server->connections.nodes[node][channel]);
}

static void io_write(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                     size_t len)
{
    struct server *server = context;
    connections_write(&server->connections, nodes, channel, bytes, len);
}

static struct session *session_of(struct engine_client *client)
{
    return (struct session *)((char *)client - offsetof(struct session, client));
}

static void io_reply(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                     const struct reply *reply)
{
    (void)context;
    session_on_reply(session_of(client), tag, tag_len, reply);
}

static void io_undone(void *context, struct engine_client *client, const char *tag, size_t tag_len)
{
    (void)context;
    session_on_undone(session_of(client), tag, tag_len);
}

static void io_push(void *context, struct engine_client *client, const struct push *push)
{
    struct server *server = context;
    session_on_push(session_of(client), push);
    /* At shutdown every HOLD is lost. The log already has the event `stopping`, so the HOLDs are
     * not logged one by one. */
    if (push->kind != PUSH_LOST || server->drain_until_ns != 0)
        return;
    unsigned loss = 0;
    while (strcmp(engine_losses[loss].word, push->reason) != 0)
        loss++;
    status_history_on_lost(&server->history, push->resource, push->resource_len,
                           engine_client_name(client), loss, clock_wall_ns());
    client_log(&server->clients.client_log, CLIENT_LOG_HOLD_LOST,
               LOG_FIELDS(log_bytes("resource", push->resource, push->resource_len),
                          log_number("client", (int64_t)engine_client_id(client)),
                          log_text("name", engine_client_name(client)),
                          log_text("reason", push->reason)));
}

/* Log only the first 8 digits of the token: the whole token is the right to release the lock. */
static void io_breaking(void *context, const struct engine_client *by,
                        const struct engine_broken *broken)
{
    struct server *server = context;
    const struct session *session =
        (const struct session *)((const char *)by - offsetof(struct session, client));
    client_log(&server->clients.client_log, CLIENT_LOG_BROKEN,
               LOG_FIELDS(log_bytes("resource", broken->resource, broken->resource_len),
                          log_bytes("token", broken->token, 8),
                          log_text("user", session_user(session, "")),
                          log_text("peer", session->peer), log_text("name", engine_client_name(by)),
                          log_number("by_client", (int64_t)engine_client_id(by)),
                          log_number("of_client", (int64_t)broken->owner_id),
                          log_text("of_name", broken->owner_label)));
}

static void io_link_changed(void *context, unsigned node, enum link_state before)
{
    struct server *server = context;
    node_log_link(&server->connections, node, before);
    if (engine_view_master(server->engine, node, clock_now_ns()).state == LINK_UP)
        node_on_up(&server->connections.nodes[node][CHANNEL_COMMANDS]);
}

static void io_clock_stepped_back(void *context, unsigned node, int64_t back_ns)
{
    const struct server *server = context;
    node_log_clock_back(&server->connections, node, back_ns);
}

static void io_vote_changed(void *context, unsigned node, enum reason before, enum reason reason,
                            int64_t now_ns)
{
    struct server *server = context;
    status_history_on_vote(&server->history, node, reason, now_ns);
    /* A probe reports a duplicate with the other masters. */
    if ((server->task.probe && reason == REASON_DUPLICATE) ||
        node_log_vote(&server->connections, node, before, reason, now_ns))
        return;
    server->failed = true;
    event_base_loopbreak(server->base);
}

static void io_command_refused(void *context, unsigned node, enum reason reason, bool release)
{
    const struct server *server = context;
    node_log_refused(&server->connections, node, reason, release);
}

static void io_lease_found(void *context, unsigned node, unsigned named, const char *lease)
{
    struct server *server = context;
    probe_on_lease_found(&server->probe, node, named, lease);
}

static void io_self_tested(void *context, unsigned node, const char *what, enum reason refused)
{
    struct server *server = context;
    probe_on_self_tested(&server->probe, node, what, refused);
}

static int64_t io_wall_us(void *context)
{
    (void)context;
    return clock_wall_ns() / 1000;
}

static void io_random(void *context, void *bytes, size_t len)
{
    struct server *server = context;
    random_fill(&server->random, bytes, len);
}

struct engine_io server_io(struct server *server)
{
    return (struct engine_io){
        .links = {server, io_open, io_close, io_write, io_random},
        .context = server,
        .reply = io_reply,
        .undone = io_undone,
        .push = io_push,
        .breaking = io_breaking,
        .link_changed = io_link_changed,
        .clock_stepped_back = io_clock_stepped_back,
        .vote_changed = io_vote_changed,
        .command_refused = io_command_refused,
        .self_tested = io_self_tested,
        .lease_found = io_lease_found,
        .wall_us = io_wall_us,
    };
}
