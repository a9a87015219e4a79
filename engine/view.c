#include "engine/view.h"

#include <assert.h>
#include <string.h>

#include "engine/guard/record_write.h"
#include "engine/internal.h"

static_assert((int)ENGINE_SET_ID == (int)RECORD_SET_ID, "engine/view.h repeats this value");
static_assert((int)ENGINE_LEASE_MAX >= (int)GUARD_SERVER_MAX, "a lease fits");
static_assert(ENGINE_DAEMON_TIMEOUT_NS == GUARD_DAEMON_TIMEOUT_NS,
              "engine/view.h repeats this value");

struct engine_view engine_view(const struct engine *engine)
{
    const struct lock_manager *manager = &engine->manager;
    struct engine_view view = {
        .node_count = engine->flights.node_count,
        .quorum = engine->rules.round.quorum,
        .set_id = engine->flights.guard.set_id,
        .stats = &engine->stats,
        .rounds = engine->flights.pool.in_use,
        .locks = manager->locks.in_use,
        .holds = manager->held_count,
        .holding = manager->holding,
        .waiting = manager->waiting,
        .waited_for = manager->waited_for_count,
        .held_back = manager->start_queue.length,
        .limit = engine->flights.admission.limit,
        .slots = manager->semaphores.reserved,
    };
    const struct semaphore *semaphore;
    LIST_FOREACH (semaphore, &manager->semaphores.all, of_all)
        view.slots_held += semaphore_held(semaphore);
    return view;
}

/* --- masters --- */

static void view_link(struct master_view *view, const struct link *link)
{
    view->state = link->state;
    view->reason = link->reason;
    view->takes_votes = link_refuses_vote(link) == REASON_NONE;
    view->since_ns = link->since_ns;
    view->silence_timeout_ns = link_silence_timeout_ns(link);
    view->attempts = link->attempts;
    view->heartbeat_due = link->heartbeat_due;
    view->round_trip_ns = link->round_trip_ns;
    view->round_trips = &link->round_trips;
    view->unanswered = link_unanswered(link);
    view->pending_releases = link->pending_releases.count;
    view->forgotten = link->pending_releases.dropped;
}

static void view_guard(struct master_view *view, const struct guard *guard, unsigned node,
                       int64_t now_ns)
{
    const struct guard_node *known = &guard->nodes[node];
    view->vote_ns = guard_refuses_until_ns(guard, node, now_ns);
    view->blocked = guard_own_conflict(guard, node, now_ns);
    view->durable = known->identity.durability == DURABILITY_SEEN;
    view->quarantine_why = known->identity.adopted.why;
    view->quarantine_until_ns = known->identity.quarantine_until_ns;
    view->duplicate_of = guard_duplicate_of(guard, node);
    view->old_set_daemon =
        guard_old_set_may_run(guard, node, now_ns) ? known->old_set_daemon : NULL;
    view->record_set = known->identity.record.set_id;
    view->record_cluster = known->identity.record.cluster;
    view->record_max_ttl_ms = known->identity.record.max_ttl_ms;
    view->clock_compared = known->clock.monitor.begun;
    view->clock_low_ns = known->clock.monitor.low_ns;
    view->clock_high_ns = known->clock.monitor.high_ns;
}

struct master_view engine_view_master(const struct engine *engine, unsigned node, int64_t now_ns)
{
    const struct master *master = &engine->flights.masters[node];
    struct master_view view = {
        .vote = master_refuses_vote(master, now_ns),
        .tracking = master->tracker.tracking != 0,
    };
    view_link(&view, &master->link);
    view_guard(&view, &engine->flights.guard, node, now_ns);
    return view;
}

const char *engine_meaning(const struct engine *engine, unsigned node, enum reason reason)
{
    return link_meaning(&engine->flights.masters[node].link, reason);
}

enum reason engine_lease_conflict(const struct engine *engine, unsigned node, const char *lease,
                                  unsigned on)
{
    const struct guard *guard = &engine->flights.guard;
    return guard_lease_conflict(guard, node, lease, guard->nodes[on].clock.sampled_time_us);
}

enum engine_progress engine_progress(const struct engine *engine, unsigned *node)
{
    static const enum engine_progress progress[] = {
        [GUARD_IN_PROGRESS] = ENGINE_UNDER_WAY,
        [GUARD_DONE] = ENGINE_DONE,
        [GUARD_REFUSED] = ENGINE_REFUSED,
    };
    return progress[guard_progress(&engine->flights.guard, node)];
}

void engine_heartbeat(struct engine *engine, unsigned node, int64_t now_ns)
{
    guard_io_heartbeat(&engine->flights.masters[node], now_ns);
}

int64_t engine_shortest_hold_ms(const struct engine_rules *rules)
{
    return hold_shortest_ms(&rules->round.drift, rules->round.node_timeout_ns);
}

int64_t engine_need_ns(int64_t backoff_min_ns, int64_t round_trip_ns)
{
    return need_ns(backoff_min_ns, round_trip_ns);
}

/* --- resources --- */

static struct resource_view view_resource(const struct resource *resource)
{
    const struct lock *lock = resource->lock;
    struct resource_view view = {
        .name = resource->name,
        .name_len = resource->name_len,
        .queued = resource->waits + resource->impatient,
        .waits = resource->waits,
        .acquiring = resource->queue.phase == QUEUE_ACQUIRING,
        .locked = lock != NULL,
    };
    if (resource->semaphore != NULL) {
        view.slots = resource->semaphore->slots;
        view.slots_held = semaphore_held(resource->semaphore);
    }
    if (lock == NULL)
        return view;
    view.hold = lock->client != NULL && !lock->client->ended;
    view.token = lock->token;
    view.client = lock->client_label;
    view.client_id = lock->client_id;
    view.since_ns = lock->hold.since_ns;
    view.until_ns = lock->hold.until_ns;
    return view;
}

static bool fill_view(const struct resource *resource, const struct resource **place,
                      struct resource_view *view)
{
    *place = resource;
    if (resource != NULL)
        *view = view_resource(resource);
    return resource != NULL;
}

bool engine_next_resource(const struct engine *engine, const struct resource **place,
                          struct resource_view *view)
{
    return fill_view(*place != NULL ? TAILQ_NEXT(*place, of_all)
                                    : TAILQ_FIRST(&engine->manager.resources.all),
                     place, view);
}

bool engine_next_waited_for(const struct engine *engine, const struct resource **place,
                            struct resource_view *view)
{
    return fill_view(*place != NULL ? LIST_NEXT(*place, waited_for)
                                    : LIST_FIRST(&engine->manager.waited_for),
                     place, view);
}

bool engine_find_resource(const struct engine *engine, const struct request *request,
                          struct resource_view *view, const struct resource **place)
{
    return fill_view(
        resource_find(&engine->manager.resources, request->resource, request->resource_len), place,
        view);
}

unsigned engine_queue_position(const struct resource *place, const struct engine_client *client,
                               int64_t now_ns)
{
    const struct pending_request *pending;
    const struct pending_request *first = NULL;
    if (place->waits + place->impatient == 0)
        return 0;
    /* The oldest request of a client is the last in its list. */
    LIST_FOREACH (pending, &client->pending_requests, of_client)
        if (pending->resource == place)
            first = pending;
    if (first == NULL)
        return 0;
    return first->slots > 0 ? semaphore_position(pending_semaphore(first), first, now_ns)
                            : queue_position(&first->resource->queue, &first->waiter, now_ns);
}

/* --- clients --- */

uint64_t engine_client_id(const struct engine_client *client)
{
    return client->id;
}

const char *engine_client_name(const struct engine_client *client)
{
    return client->label;
}

unsigned engine_client_requests(const struct engine_client *client)
{
    return client->pending_count;
}

unsigned engine_client_holds(const struct engine_client *client)
{
    return client->hold_count;
}

void engine_client_set_name(struct engine_client *client, const char *name, size_t len)
{
    assert(len < sizeof(client->label));
    memcpy(client->label, name, len);
    client->label[len] = '\0';
}

void engine_client_unreachable(struct engine_client *client)
{
    client->disconnected = true;
}

bool engine_tag_in_use(const struct engine *engine, const struct engine_client *client,
                       const char *tag, size_t tag_len)
{
    /* Most clients wait for each reply before they send the next request. */
    return !LIST_EMPTY(&client->pending_requests) &&
           tags_find(&engine->manager.tags, client, tag, tag_len);
}

bool engine_client_resources(const struct engine_client *client,
                             bool (*each)(const char *name, size_t name_len, const void *context),
                             const void *context)
{
    const struct lock *lock;
    const struct pending_request *pending;
    LIST_FOREACH (lock, &client->holds, of_client)
        if (!each(lock->resource->name, lock->resource->name_len, context))
            return false;
    LIST_FOREACH (pending, &client->pending_requests, of_client)
        if (pending->resource != NULL &&
            !each(pending->resource->name, pending->resource->name_len, context))
            return false;
    return true;
}
