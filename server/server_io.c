#include "server/server_io.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"
#include "server/clock.h"

/* How long after the start a list that names a master twice ends it, unless all have voted. */
#define STARTING_NS (5 * NS_PER_S)

static void io_open(void *context, unsigned node, enum channel channel)
{
    struct server *server = context;
    node_open(&server->nodes[node][channel]);
}

static void io_close(void *context, unsigned node, enum channel channel)
{
    struct server *server = context;
    node_close(&server->nodes[node][channel]);
}

static void io_write(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                     size_t len)
{
    struct server *server = context;
    if (channel == CHANNEL_COMMANDS) {
        broadcast_write(&server->broadcast, nodes, bytes, len);
        server_want_flush(server);
        return;
    }
    for (; nodes != 0; nodes = nodes_behind_first(nodes))
        stream_write(&server->nodes[nodes_first(nodes)][channel].stream, bytes, len);
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
    /* At the end of the daemon all of them are, which its log says anyway. */
    if (push->kind != PUSH_LOST || server->drain_until_ns != 0)
        return;
    monitor_on_lost(&server->monitor, push->resource, push->resource_len, client->label,
                    engine_loss_of(push->reason), clock_wall_ns());
    char resource[LIMIT_RESOURCE + 1];
    memcpy(resource, push->resource, push->resource_len);
    resource[push->resource_len] = '\0';
    client_log(&server->clients.client_log, CLIENT_LOG_HOLD_LOST,
               LOG_FIELDS(log_text("resource", resource), log_number("client", (int64_t)client->id),
                          log_text("name", client->label), log_text("reason", push->reason)));
}

/* A whole token is never logged. */
static void io_breaking(void *context, const struct engine_client *by,
                        const struct engine_broken *broken)
{
    struct server *server = context;
    const struct session *session =
        (const struct session *)((const char *)by - offsetof(struct session, client));
    char resource[LIMIT_RESOURCE + 1];
    char token[8 + 1];
    memcpy(resource, broken->resource, broken->resource_len);
    resource[broken->resource_len] = '\0';
    memcpy(token, broken->token, sizeof(token) - 1);
    token[sizeof(token) - 1] = '\0';
    client_log(&server->clients.client_log, CLIENT_LOG_BROKEN,
               LOG_FIELDS(log_text("resource", resource), log_text("token", token),
                          log_text("user", session_user(session, "")),
                          log_text("peer", session->peer), log_text("name", by->label),
                          log_number("by_client", (int64_t)by->id),
                          log_number("of_client", (int64_t)broken->owner_id),
                          log_text("of_name", broken->owner_label)));
}

/* It is down for another reason than any there was since it was last up. */
static bool is_down_anew(struct server *server, unsigned node)
{
    const struct link *link = &server->engine.flights.masters[node].link;
    uint64_t *told = &server->down_because[node];
    uint64_t reason = UINT64_C(1) << link->reason;
    static_assert(REASON_COUNT <= 64, "a bit for each of them");
    bool is_new = link->state == LINK_DOWN && (*told & reason) == 0;
    if (link->state == LINK_UP)
        *told = 0;
    else if (is_new)
        *told |= reason;
    return is_new;
}

/* Only edges that an operator would act on: a master gained or lost, and why. */
static void log_link(struct server *server, unsigned node, enum link_state before)
{
    const struct link *link = &server->engine.flights.masters[node].link;
    const char *name = server->config->nodes[node].name;
    char address[SOCKADDR_TEXT] = "";
    bool was_usable = before == LINK_UP || before == LINK_SUSPECT;
    bool down_anew = is_down_anew(server, node);
    if (link->reason != REASON_UNRESOLVED)
        node_address(&server->nodes[node][CHANNEL_COMMANDS], address);
    const struct log_field behind_name = log_text(address[0] != '\0' ? "address" : NULL, address);
    if (link->state == LINK_UP)
        log_event(&server->log, CONFIG_LOG_INFO, "node_up",
                  LOG_FIELDS(log_text("node", name), behind_name));
    else if (link->state == LINK_SUSPECT || (link->state == LINK_DOWN && was_usable) || down_anew)
        log_event(&server->log, CONFIG_LOG_WARNING,
                  link->state == LINK_SUSPECT ? "node_suspect" : "node_down",
                  LOG_FIELDS(log_text("node", name), log_text("reason", reason_word(link->reason)),
                             log_text("meaning", link_meaning(link, link->reason)), behind_name));
    else
        log_event(&server->log, CONFIG_LOG_DEBUG, "node_state",
                  LOG_FIELDS(log_text("node", name),
                             log_text("state", link_state_word(link->state)),
                             log_text("reason", reason_word(link->reason))));
}

static void io_link_changed(void *context, unsigned node, enum link_state before)
{
    struct server *server = context;
    log_link(server, node, before);
    if (server->engine.flights.masters[node].link.state == LINK_UP)
        node_on_up(&server->nodes[node][CHANNEL_COMMANDS]);
}

static void log_other_set(const struct server *server, unsigned node)
{
    const struct record *theirs = &server->engine.flights.guard.nodes[node].record;
    log_event(
        &server->log, CONFIG_LOG_ERROR, "node_without_vote",
        LOG_FIELDS(log_text("node", server->config->nodes[node].name),
                   log_text("reason", reason_word(REASON_OTHERSET)),
                   log_text("meaning", reason_text(REASON_OTHERSET)),
                   log_text("theirs", theirs->set_id), log_text("their_cluster", theirs->cluster),
                   log_number("their_max_ttl_ms", theirs->max_ttl_ms),
                   log_text("ours", server->engine.flights.guard.set_id),
                   log_text("our_cluster", server->config->cluster),
                   log_number("our_max_ttl_ms", server->config->locks.max_ttl_ns / NS_PER_MS)));
}

static void log_no_vote(const struct server *server, unsigned node, enum reason before,
                        enum reason reason, int64_t now_ns)
{
    int64_t until_ns = guard_refuses_until_ns(&server->engine.flights.guard, node, now_ns);
    int64_t left_ms = until_ns == INT64_MAX ? -1 : (until_ns - now_ns) / NS_PER_MS;
    /* At the first look at a record whose time has just come. */
    const struct guard_node *looked_at = &server->engine.flights.guard.nodes[node];
    int64_t quarantine_ns = looked_at->quarantine_until_ns - now_ns;
    bool just_over =
        reason == looked_at->quarantine_why && quarantine_ns >= 0 && quarantine_ns < NS_PER_MS;
    if (left_ms == 0 || just_over)
        return;
    log_event(&server->log, CONFIG_LOG_WARNING, "node_without_vote",
              LOG_FIELDS(log_text("node", server->config->nodes[node].name),
                         log_text("reason", reason_word(reason)),
                         log_text("meaning", link_meaning(&server->engine.flights.masters[node].link, reason)),
                         log_text("before", reason_word(before)), log_number("for_ms", left_ms)));
}

static void log_doubled(const struct server *server, unsigned node, enum config_log_level level,
                        const char *event, const char *meaning)
{
    unsigned twin = guard_twin(&server->engine.flights.guard, node);
    log_event(&server->log, level, event,
              LOG_FIELDS(log_text("node", server->config->nodes[node].name),
                         log_text("reason", reason_word(REASON_DOUBLED)),
                         log_text(meaning, reason_text(REASON_DOUBLED)),
                         log_text("same_as", server->config->nodes[twin].name),
                         log_text("advice", "list each master once")));
}

static void log_vote(const struct server *server, unsigned node, enum reason before,
                     enum reason reason, int64_t now_ns)
{
    const struct engine *engine = &server->engine;
    /* What the link has lost, it has logged; each connection begins unchecked; and where the
     * masters are to be trusted, they are new. */
    bool expected = link_refuses_vote(&engine->flights.masters[node].link) != REASON_NONE ||
                    reason == REASON_UNCHECKED || (engine->rules.bootstrap && reason == REASON_NEW);
    if (reason == REASON_NONE)
        log_event(&server->log, CONFIG_LOG_INFO, "node_votes",
                  LOG_FIELDS(log_text("node", server->config->nodes[node].name)));
    else if (reason == REASON_OTHERSET)
        log_other_set(server, node);
    else if (reason == REASON_DOUBLED)
        log_doubled(server, node, CONFIG_LOG_WARNING, "node_without_vote", "meaning");
    else if (!expected)
        log_no_vote(server, node, before, reason, now_ns);
}

/* A list that names a master twice is a mistake at the start. Later, when a name is repointed by
 * mistake, it costs a vote and not the service. */
static bool is_doubled_at_start(const struct server *server, enum reason reason, int64_t now_ns)
{
    return reason == REASON_DOUBLED && !server->was_whole &&
           now_ns - server->started_ns < STARTING_NS;
}

static void io_clock_stepped_back(void *context, unsigned node, int64_t back_ns)
{
    const struct server *server = context;
    log_event(&server->log, CONFIG_LOG_WARNING, "clock_stepped_back",
              LOG_FIELDS(log_text("node", server->config->nodes[node].name),
                         log_number("by_ms", (back_ns + NS_PER_MS - 1) / NS_PER_MS),
                         log_text("effect", "its keys live longer: locks that nobody releases are "
                                            "free later")));
}

static void io_vote_changed(void *context, unsigned node, enum reason before, enum reason reason,
                            int64_t now_ns)
{
    struct server *server = context;
    monitor_on_vote(&server->monitor, node, reason, now_ns);
    server->votes += reason == REASON_NONE;
    server->votes -= before == REASON_NONE;
    server->was_whole = server->was_whole || server->votes == server->config->node_count;
    if (!is_doubled_at_start(server, reason, now_ns)) {
        log_vote(server, node, before, reason, now_ns);
        return;
    }
    log_doubled(server, node, CONFIG_LOG_ERROR, "start_failed", "why");
    server->failed = true;
    event_base_loopbreak(server->base);
}

static void io_command_refused(void *context, unsigned node, enum reason reason, bool release)
{
    struct server *server = context;
    const struct link *link = &server->engine.flights.masters[node].link;
    log_event(&server->log, CONFIG_LOG_WARNING, "command_refused",
              LOG_FIELDS(log_text("node", server->config->nodes[node].name),
                         log_text("reason", reason_word(reason)),
                         log_text("meaning", link_meaning(link, reason)),
                         log_text("effect", release ? "released locks stay there until they end"
                                                    : "its votes are lost")));
}

static void io_releases_refused(void *context, unsigned node, enum redis_form form)
{
    static const struct {
        const char *meaning;
        const char *advice;
    } words[] = {
        [REDIS_BY_SHA1] = {"it refuses to release several locks at once; each goes alone, which "
                           "costs it more",
                           "its ACL needs +mget +exists"},
        [REDIS_DELIFEQ] = {"it refuses DELIFEQ; a script does the same, which costs it more",
                           "its ACL needs +delifeq"},
        [REDIS_DELEX] = {"it refuses DELEX; a script does the same, which costs it more",
                         "its ACL needs +delex"},
    };
    struct server *server = context;
    log_event(&server->log, CONFIG_LOG_WARNING, "releases_refused",
              LOG_FIELDS(log_text("node", server->config->nodes[node].name),
                         log_text("meaning", words[form].meaning),
                         log_text("advice", words[form].advice)));
}

static void io_leased(void *context, unsigned node, unsigned named, const char *lease)
{
    probe_on_leased(context, node, named, lease);
}

static void io_tried(void *context, unsigned node, const char *what, enum reason refused)
{
    probe_on_tried(context, node, what, refused);
}

static int64_t io_wall_us(void *context)
{
    (void)context;
    return clock_wall_ns() / 1000;
}

static void io_entropy(void *context, void *bytes, size_t len)
{
    struct server *server = context;
    entropy_fill(&server->entropy, bytes, len);
}

struct engine_io server_io(struct server *server)
{
    return (struct engine_io){
        .context = server,
        .open = io_open,
        .close = io_close,
        .write = io_write,
        .reply = io_reply,
        .undone = io_undone,
        .push = io_push,
        .breaking = io_breaking,
        .link_changed = io_link_changed,
        .clock_stepped_back = io_clock_stepped_back,
        .vote_changed = io_vote_changed,
        .command_refused = io_command_refused,
        .releases_refused = io_releases_refused,
        .tried = io_tried,
        .leased = io_leased,
        .wall_us = io_wall_us,
        .entropy = io_entropy,
    };
}
