#include "engine/flight/masters.h"

#include "engine/round/node_set.h"

/* Any key may have changed on this node, or its vote counts again. */
static void look_again(struct flights *flights, unsigned node)
{
    flights->news.any = true;
    flights->news.look_again |= nodes_only(node);
}

/* --- votes --- */

void masters_note_votes(struct flights *flights, int64_t now_ns)
{
    for (unsigned i = 0; i < flights->node_count; i++) {
        struct master *master = &flights->masters[i];
        enum reason before = master->vote_reason;
        enum reason reason = master_refuses_vote(master, now_ns);
        int64_t back_ns = guard_take_step_back(&flights->guard, i, now_ns);
        if (back_ns != 0)
            flights->io->clock_stepped_back(flights->io->context, i, back_ns);
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
            look_again(flights, i);
    }
}

/* --- reports of changes --- */

/* Once both connections are there. */
static void start_tracking(struct flights *flights, unsigned node, int64_t now_ns)
{
    struct master *master = &flights->masters[node];
    if (master->tracker.state != TRACKER_LISTENING || !master_is_connected(master) ||
        master->tracking_refused)
        return;
    tracker_start(&master->tracker, &master->link, now_ns);
    look_again(flights, node);
}

static void stop_tracking(struct flights *flights, unsigned node)
{
    tracker_stop(&flights->masters[node].tracker);
    masters_on_untracked(flights, node);
}

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
    /* It is not asked again on this connection. */
    master->tracking_refused = true;
    stop_tracking(flights, node);
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
        master->tracking_refused = false;
        start_tracking(flights, node, now_ns);
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
        look_again(flights, node);
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
                           master_begun_ns(master, &flights->rules->round.drift, now_ns));
        flights->guard_has_work = true;
        link_heartbeat(&master->link, now_ns);
        start_tracking(flights, node, now_ns);
    } else if (!connected && link_is_connected(before)) {
        master_on_lost(master);
        stop_tracking(flights, node);
    }
    masters_note_votes(flights, now_ns);
}
