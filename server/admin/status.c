#include "server/admin/status.h"

#include <string.h>
#include <unistd.h>

#include "protocol/units.h"
#include "server/clock.h"
#include "server/server.h"

/* --- from the engine --- */

static void take_node(struct status_node *to, const struct engine *engine, unsigned node,
                      int64_t boot_ns, int64_t now_ns)
{
    const struct master_view master = engine_view_master(engine, node, now_ns);
    bool timed = master.takes_votes && master.vote_ns != INT64_MAX;
    *to = (struct status_node){
        .state = master.state,
        .state_ms = (now_ns - master.since_ns) / NS_PER_MS,
        .reason = master.vote,
        .back_ms = timed ? (master.vote_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : -1,
        .round_trip_us = master.round_trip_ns < 0 ? -1 : master.round_trip_ns / 1000,
        .round_trips = *master.round_trips,
        .tracking = master.tracking,
        .unanswered = master.unanswered,
        .pending_releases = master.pending_releases,
        .forgotten = master.forgotten,
        .clock_compared = master.clock_compared,
        /* The guard compares the master's clock with this host's time since boot. An operator
         * expects a comparison with this host's wall clock. */
        .clock_low_ns = master.clock_low_ns - boot_ns,
        .clock_high_ns = master.clock_high_ns - boot_ns,
    };
}

/* The time until a quorum votes again, if enough masters get their vote back by waiting alone;
 * otherwise -1. */
static int64_t quorum_back_ms(const struct status *status)
{
    int64_t back_ms = -1;
    for (unsigned i = 0; i < status->engine.node_count; i++) {
        const struct status_node *node = &status->nodes[i];
        unsigned by_then = status->voting;
        if (node->reason == REASON_NONE || node->back_ms < 0)
            continue;
        for (unsigned j = 0; j < status->engine.node_count; j++)
            by_then += status->nodes[j].reason != REASON_NONE && status->nodes[j].back_ms >= 0 &&
                       status->nodes[j].back_ms <= node->back_ms;
        if (by_then >= status->engine.quorum && (back_ms < 0 || node->back_ms < back_ms))
            back_ms = node->back_ms;
    }
    return back_ms;
}

/* Copy the state of the masters and the locks. */
static void take_engine(struct status *status, const struct engine *engine,
                        const struct config *config, int64_t now_ns)
{
    status->engine = engine_view(engine);
    for (unsigned i = 0; i < status->engine.node_count; i++) {
        take_node(&status->nodes[i], engine, i, status->wall_ns - now_ns, now_ns);
        status->nodes[i].name = config->nodes[i].name;
        status->nodes[i].url = config->nodes[i].address.url;
        status->voting += status->nodes[i].reason == REASON_NONE;
    }
    status->back_ms = status->voting < status->engine.quorum ? quorum_back_ms(status) : -1;
}

struct status_lock status_lock_of(const struct resource_view *resource, int64_t now_ns)
{
    struct status_lock lock = {.resource = *resource};
    if (!resource->locked)
        return lock;
    lock.held_ms = (now_ns - resource->since_ns) / NS_PER_MS;
    if (resource->until_ns > now_ns)
        lock.left_ms = (resource->until_ns - now_ns) / NS_PER_MS;
    return lock;
}

/* Keep the longest queues, sorted by insertion. Most queues are too short to be inserted. */
void status_take_queues(struct status *status, const struct engine *engine, int64_t now_ns)
{
    const struct resource *place = NULL;
    struct resource_view resource;
    for (unsigned i = 0;
         i < STATUS_QUEUES_EXAMINED && engine_next_waited_for(engine, &place, &resource); i++) {
        unsigned at = status->queue_count;
        while (at > 0 && status->queues[at - 1].resource.waits < resource.waits)
            at--;
        if (at == STATUS_QUEUES)
            continue;
        if (status->queue_count < STATUS_QUEUES)
            status->queue_count++;
        memmove(status->queues + at + 1, status->queues + at,
                (status->queue_count - at - 1) * sizeof(status->queues[0]));
        status->queues[at] = status_lock_of(&resource, now_ns);
    }
}

/* --- from the server --- */

void status_take_clients(struct status *status, const struct clients *clients, int64_t now_ns)
{
    memset(status, 0, sizeof(*status));
    status->cluster = clients->config->cluster;
    status->version = REDLOCKD_VERSION;
    status->pid = (int)getpid();
    status->uptime_ns = now_ns - clients->started_ns;
    status->wall_ns = clock_wall_ns();
    take_engine(status, clients->engine, clients->config, now_ns);
    status->clients = clients->session_count;
    status->clients_max = clients->limit;
    status->unauthenticated = clients->auth.pending_count;
    status->accepted = clients->next_session_id;
    status->auth_late = clients->auth.late;
    status->auth_displaced = clients->auth.displaced;
    status->wrong_secrets = clients->auth.wrong;
    status->tls_failed = clients->handshakes.failed;
    status->denied = clients->denied;
    memcpy(status->rejected, clients->rejected, sizeof(status->rejected));
    memcpy(status->requests, clients->requests, sizeof(status->requests));
    memcpy(status->request_errors, clients->request_errors, sizeof(status->request_errors));
}

void status_take(struct status *status, const struct server *server, int64_t now_ns)
{
    status_take_clients(status, &server->clients, now_ns);
    status->stopping = server->drain_until_ns != 0;
    status->reload_refused = server->reload_refused;
    status->lag = server->lag;
    status->admin_rejected = server->admin.listener.rejected;
    status->metrics_rejected = server->admin.metrics.rejected;
    status->process = &server->admin.process;
    status->history = &server->history;
    status->grants_a_second = status_history_grants_a_second(&server->history, 10);
    for (unsigned i = 0; i < status->engine.node_count; i++) {
        int64_t since_ns = server->history.no_vote_ns[i];
        /* The history changes as soon as a vote changes, so it can be newer than this view and say
         * that the node votes. */
        if (status->nodes[i].reason != REASON_NONE && since_ns != 0)
            status->nodes[i].no_vote_ns = now_ns - since_ns;
    }
}
