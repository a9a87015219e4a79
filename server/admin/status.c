#include "server/admin/status.h"

#include <string.h>
#include <unistd.h>

#include "protocol/units.h"
#include "server/clock.h"
#include "server/server.h"

/* --- what is read of the engine --- */

static void take_node(struct status_node *to, const struct engine *engine, unsigned node,
                      int64_t boot_ns, int64_t now_ns)
{
    const struct link *link = &engine->flights.masters[node].link;
    const struct watch *watch = &engine->flights.guard.nodes[node].clock.watch;
    int64_t until_ns = guard_refuses_until_ns(&engine->flights.guard, node, now_ns);
    bool timed = link_refuses_vote(link) == REASON_NONE && until_ns != INT64_MAX;
    *to = (struct status_node){
        .state = link->state,
        .state_ms = (now_ns - link->since_ns) / NS_PER_MS,
        .reason = engine_refuses_vote(engine, node, now_ns),
        .back_ms = timed ? (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : -1,
        .round_trip_us = link->round_trip_ns < 0 ? -1 : link->round_trip_ns / 1000,
        .round_trips = link->round_trips,
        .tracking = engine->flights.masters[node].tracker.tracking != 0,
        .unanswered = link_unanswered(link),
        .owed = link->owed.count,
        .forgotten = link->owed.dropped,
        .clock_compared = watch->begun,
        /* The watch compares with the time since boot, which nobody could read. */
        .clock_low_ns = watch->low_ns - boot_ns,
        .clock_high_ns = watch->high_ns - boot_ns,
    };
}

/* When the last of those that are missing is back, if all of that many are a matter of time. */
static int64_t quorum_back_ms(const struct status *status)
{
    int64_t back_ms = -1;
    for (unsigned i = 0; i < status->node_count; i++) {
        const struct status_node *node = &status->nodes[i];
        unsigned by_then = status->voting;
        if (node->reason == REASON_NONE || node->back_ms < 0)
            continue;
        for (unsigned j = 0; j < status->node_count; j++)
            by_then += status->nodes[j].reason != REASON_NONE && status->nodes[j].back_ms >= 0 &&
                       status->nodes[j].back_ms <= node->back_ms;
        if (by_then >= status->quorum && (back_ms < 0 || node->back_ms < back_ms))
            back_ms = node->back_ms;
    }
    return back_ms;
}

/* The masters and the locks. */
static void take_engine(struct status *status, const struct engine *engine,
                        const struct config *config, int64_t now_ns)
{
    status->node_count = engine->flights.node_count;
    status->quorum = engine->rules.round.quorum;
    status->stats = engine->stats;
    status->operations = engine->flights.pool.in_use;
    status->locks = engine->manager.locks.in_use;
    status->holds = engine->manager.held_count;
    status->holding = engine->manager.holding;
    status->waiting = engine->manager.waiting;
    status->waited_for = engine->manager.waited_for_count;
    for (unsigned i = 0; i < engine->flights.node_count; i++) {
        take_node(&status->nodes[i], engine, i, status->wall_ns - now_ns, now_ns);
        status->nodes[i].name = config->nodes[i].name;
        status->nodes[i].url = config->nodes[i].address.url;
        status->voting += status->nodes[i].reason == REASON_NONE;
    }
    status->back_ms = status->voting < status->quorum ? quorum_back_ms(status) : -1;
}

struct status_lock status_take_lock(const struct resource *resource, int64_t now_ns)
{
    const struct lock *lock = resource->lock;
    struct status_lock taken = {
        .resource = resource->name,
        .resource_len = resource->name_len,
        .queued = resource->queue.length,
        .waits = resource->waits,
        .asking = resource->queue.phase == QUEUE_ASKING,
        .held = lock != NULL,
    };
    if (lock == NULL)
        return taken;
    taken.hold = lock->client != NULL;
    memcpy(taken.token, lock->token, sizeof(taken.token) - 1);
    taken.client = lock->client_label;
    taken.client_id = lock->client_id;
    taken.held_ms = (now_ns - lock->hold.since_ns) / NS_PER_MS;
    if (lock->hold.until_ns > now_ns)
        taken.left_ms = (lock->hold.until_ns - now_ns) / NS_PER_MS;
    return taken;
}

/* The longest ones, by insertion: nearly all of those looked at are not among them. */
void status_take_queues(struct status *status, const struct server *server, int64_t now_ns)
{
    const struct resource *longest[STATUS_QUEUES];
    const struct resource *resource;
    unsigned looked_at = 0;
    LIST_FOREACH (resource, &server->engine.manager.waited_for, waited_for) {
        unsigned place = status->queue_count;
        if (looked_at++ == STATUS_LOOKED_AT)
            break;
        while (place > 0 && longest[place - 1]->waits < resource->waits)
            place--;
        if (place == STATUS_QUEUES)
            continue;
        if (status->queue_count < STATUS_QUEUES)
            status->queue_count++;
        memmove(longest + place + 1, longest + place,
                (status->queue_count - place - 1) * sizeof(longest[0]));
        longest[place] = resource;
    }
    for (unsigned i = 0; i < status->queue_count; i++)
        status->queues[i] = status_take_lock(longest[i], now_ns);
}

/* --- what is read of the server --- */

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
    status->admin_rejected = server->admin.rejected;
    status->process = &server->admin.process;
    status->monitor = &server->monitor;
    status->grants_a_second = monitor_grants_a_second(&server->monitor, 10);
    for (unsigned i = 0; i < status->node_count; i++) {
        int64_t since_ns = server->monitor.no_vote_ns[i];
        /* The monitor is told on the edge, which may be a moment ahead. */
        if (status->nodes[i].reason != REASON_NONE && since_ns != 0)
            status->nodes[i].no_vote_ns = now_ns - since_ns;
    }
}
