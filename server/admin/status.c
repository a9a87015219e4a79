#include "server/admin/status.h"

#include <string.h>

#include "protocol/units.h"
#include "server/clock.h"
#include "server/server.h"

/* --- the nodes --- */

static void take_node(struct status_node *to, const struct server *server, unsigned node,
                      int64_t now_ns)
{
    const struct engine *engine = &server->engine;
    const struct link *link = &engine->flights.masters[node].link;
    int64_t since_ns = server->monitor.no_vote_ns[node];
    int64_t until_ns = guard_refuses_until_ns(&engine->flights.guard, node, now_ns);
    bool timed = link_refuses_vote(link) == REASON_NONE && until_ns != INT64_MAX;
    *to = (struct status_node){
        .name = server->config->nodes[node].name,
        .url = server->config->nodes[node].address.url,
        .state = link->state,
        .reason = engine_refuses_vote(engine, node, now_ns),
        .round_trip_us = link->round_trip_ns < 0 ? -1 : link->round_trip_ns / 1000,
        .owed = link->owed.count,
        .back_ms = timed ? (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : -1,
    };
    /* The monitor is told on the edge, which may be a moment ahead. */
    if (to->reason != REASON_NONE && since_ns != 0)
        to->no_vote_ms = (now_ns - since_ns) / NS_PER_MS;
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

/* --- the queues --- */

static void take_queue(struct status_queue *to, const struct resource *resource, int64_t now_ns)
{
    const struct lock *lock = resource->lock;
    *to = (struct status_queue){
        .resource_len = resource->name_len,
        .waits = resource->waits,
        .held = lock != NULL,
        .asking = resource->queue.phase == QUEUE_ASKING,
    };
    memcpy(to->resource, resource->name, to->resource_len);
    if (lock == NULL)
        return;
    to->hold = lock->client != NULL;
    memcpy(to->client, lock->client_label, sizeof(to->client));
    to->client_id = lock->client_id;
    to->held_ms = (now_ns - lock->hold.since_ns) / NS_PER_MS;
    to->left_ms = (lock->hold.until_ns - now_ns) / NS_PER_MS;
    if (to->left_ms < 0)
        to->left_ms = 0;
}

/* The longest ones, by insertion: nearly all of those looked at are not among them. */
static void take_queues(struct status *status, const struct server *server, int64_t now_ns)
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
        take_queue(&status->queues[i], longest[i], now_ns);
}

/* --- the whole --- */

void status_take(struct status *status, const struct server *server, int64_t now_ns)
{
    const struct engine *engine = &server->engine;
    memset(status, 0, sizeof(*status));
    status->cluster = server->config->cluster;
    status->version = REDLOCKD_VERSION;
    status->uptime_ms = (now_ns - server->started_ns) / NS_PER_MS;
    status->wall_ns = clock_wall_ns();
    status->stopping = server->drain_until_ns != 0;
    status->node_count = engine->flights.node_count;
    status->quorum = engine->rules.round.quorum;
    for (unsigned i = 0; i < engine->flights.node_count; i++) {
        take_node(&status->nodes[i], server, i, now_ns);
        status->voting += status->nodes[i].reason == REASON_NONE;
    }
    status->back_ms = status->voting < status->quorum ? quorum_back_ms(status) : -1;
    status->grants_a_second = monitor_grants_a_second(&server->monitor, 10);
    status->waiting = engine->manager.waiting;
    status->waited_for = engine->manager.waited_for_count;
    status->holds = engine->manager.held_count;
    status->clients = server->session_count;
    status->clients_max = server->client_limit;
    status->monitor = &server->monitor;
    take_queues(status, server, now_ns);
}
