#include "engine/flight/masters.h"

#include <stdio.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"

/* --- initialization --- */

static void init_guard(struct flights *flights)
{
    struct guard_rules rules = {
        .node_count = flights->node_count,
        .quorum = flights->rules->round.quorum,
        .drift = flights->rules->round.drift,
        .max_ttl_ns = flights->rules->max_ttl_ns,
        .fence_ttl_ns = flights->rules->fence_ttl_ns,
        .cluster = flights->rules->cluster,
        .durable = flights->rules->durable,
        .bootstrap = flights->rules->bootstrap,
        .reset_set = flights->rules->reset_set,
        .read_only = flights->rules->read_only,
    };
    memcpy(rules.node_names, flights->rules->node_names, sizeof(rules.node_names));
    for (unsigned i = 0; i < flights->node_count; i++)
        rules.databases[i] = flights->rules->logins[i].database;
    guard_init(&flights->guard, &rules);
    for (unsigned i = 0; i < flights->node_count; i++) {
        flights->masters[i].guard = &flights->guard;
        flights->masters[i].clock_id = flights->rules->clock_id;
        flights->masters[i].absent_key = flights->absent_key;
        flights->masters[i].daemon = flights->daemon;
        flights->masters[i].vote_reason = REASON_CONNECTING;
    }
}

static void init_connections(struct flights *flights, int64_t now_ns)
{
    const struct engine_rules *rules = flights->rules;
    const struct link_io *io = &flights->io->links;
    struct outstanding *outstanding = flights->outstanding_memory;
    const struct link_rules link_rules = {
        .node_timeout_ns = rules->round.node_timeout_ns,
        .heartbeat_every_ns = flights->guard.periods.heartbeat_ns,
        .max_ttl_ms = rules->max_ttl_ns / NS_PER_MS,
    };
    for (unsigned i = 0; i < flights->node_count; i++) {
        link_init(&flights->masters[i].link, i, io, &rules->logins[i], &link_rules,
                  outstanding + i * LIMIT_LINK_COMMANDS,
                  flights->pending_releases + i * LIMIT_LINK_PENDING_RELEASES, now_ns);
        tracker_init(&flights->masters[i].tracker, i, io, &rules->logins[i],
                     link_silence_timeout_ns(&flights->masters[i].link));
    }
}

void masters_init(struct flights *flights, int64_t now_ns)
{
    /*
     * The key of the SET by which the guard tests whether locks can be set. Names of resources
     * contain no spaces, so no lock of redlockd has this key. No other client of the master knows
     * the id of this daemon.
     */
    snprintf(flights->absent_key, sizeof(flights->absent_key), "%.*sredlockd set?%.*s",
             (int)flights->rules->key_prefix_len, flights->rules->key_prefix, REDIS_DAEMON,
             flights->daemon);
    init_guard(flights);
    init_connections(flights, now_ns);
}

/* --- votes --- */

/* Any key on this node may have changed, or the node has got its vote back. */
static void probe_again(struct flights *flights, unsigned node)
{
    flights->news.any = true;
    flights->news.probe_again |= nodes_only(node);
}

/* Queues rest until a quorum can vote, as far as they know. Wake them if this node will have its
 * vote sooner than they know. The time changes a little with each sample of the master's clock, so
 * smaller differences do not matter. */
static void note_until(struct flights *flights, unsigned node, int64_t now_ns)
{
    struct master *master = &flights->masters[node];
    int64_t until_ns = master_refuses_until_ns(master, now_ns);
    if (until_ns > master->vote_ns) {
        master->vote_ns = until_ns;
    } else if (until_ns < master->vote_ns - flights->rules->round.node_timeout_ns) {
        master->vote_ns = until_ns;
        probe_again(flights, node);
    }
}

void masters_note_votes(struct flights *flights, int64_t now_ns)
{
    for (unsigned i = 0; i < flights->node_count; i++) {
        struct master *master = &flights->masters[i];
        enum reason before = master->vote_reason;
        enum reason reason = master_refuses_vote(master, now_ns);
        int64_t back_ns = clock_take_step_back(&flights->guard.nodes[i].clock, now_ns);
        if (back_ns != 0)
            flights->io->clock_stepped_back(flights->io->context, i, back_ns);
        if (reason != REASON_NONE)
            note_until(flights, i, now_ns);
        if (reason == before || reason == REASON_BACKLOG)
            continue;
        master->vote_reason = reason;
        if (before == REASON_NONE) {
            flights->news.any = true;
            flights->news.votes_lost |= nodes_only(i);
            flights->news.lost_for[i] = reason;
        }
        flights->io->vote_changed(flights->io->context, i, before, reason, now_ns);
        if (reason == REASON_NONE)
            probe_again(flights, i);
    }
}

/* --- reports of changes --- */

void masters_on_untracked(struct flights *flights, unsigned node)
{
    flights->news.any = true;
    flights->news.untracked |= nodes_only(node);
}

void masters_on_tracking_reply(struct flights *flights, unsigned node,
                               const struct redis_reply *reply)
{
    struct master *master = &flights->masters[node];
    if (reply->kind != RESP_ERROR || master->tracker.tracking == 0)
        return;
    /* The daemon does not ask again until the connection for the reports has been made anew. */
    master->tracker.tracking = 0;
    masters_on_untracked(flights, node);
}

bool masters_on_report(struct flights *flights, unsigned node, const struct redis_reply *reply,
                       int64_t now_ns)
{
    struct flights_news *news = &flights->news;
    struct master *master = &flights->masters[node];
    const char *key;
    size_t key_len;
    switch (tracker_on_reply(&master->tracker, reply, now_ns, &key, &key_len)) {
    case TRACKER_NOTHING:
        break;
    case TRACKER_READY:
        tracker_start(&master->tracker, &master->link, now_ns);
        probe_again(flights, node);
        break;
    case TRACKER_LOST:
        masters_on_untracked(flights, node);
        return false;
    case TRACKER_CHANGED:
        news->any = true;
        news->changed = key;
        news->changed_len = key_len;
        news->changed_on = node;
        break;
    case TRACKER_ALL_CHANGED:
        probe_again(flights, node);
        break;
    }
    return true;
}

/* --- connections --- */

void masters_note_link(struct flights *flights, unsigned node, enum link_state before,
                       int64_t now_ns)
{
    struct master *master = &flights->masters[node];
    bool connected = master_is_connected(master);
    if (master->link.state == before)
        return;
    flights->io->link_changed(flights->io->context, node, before);
    if (connected && !link_is_connected(before)) {
        guard_on_connected(&flights->guard, node, master->link.run_id,
                           master_begun_ns(master, &flights->rules->round.drift, now_ns), now_ns);
        flights->guard_has_work = true;
        guard_io_heartbeat(master, now_ns);
        tracker_on_link_up(&master->tracker, now_ns);
    } else if (!connected && link_is_connected(before)) {
        master_on_lost(master);
        tracker_on_link_lost(&master->tracker);
        masters_on_untracked(flights, node);
    }
    masters_note_votes(flights, now_ns);
}
