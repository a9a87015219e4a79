#include "engine/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/flight/replies.h"
#include "engine/internal.h"
#include "engine/locks/breaks.h"
#include "engine/locks/grants.h"
#include "engine/locks/news.h"
#include "engine/locks/requests.h"
#include "engine/locks/slots.h"
#include "engine/locks/survey.h"
#include "engine/locks/waits.h"
#include "engine/round/node_set.h"

bool engine_init(struct engine *engine, const struct engine_rules *rules,
                 const struct engine_io *io, int64_t now_ns)
{
    memset(engine, 0, sizeof(*engine));
    engine->rules = *rules;
    engine->io = *io;
    if (flights_init(&engine->flights, &engine->rules, &engine->io, &engine->stats, now_ns) &&
        manager_init(&engine->manager, &engine->rules, &engine->io, &engine->stats,
                     &engine->flights) &&
        breaks_init(&engine->manager) && survey_init(&engine->manager))
        return true;
    engine_deinit(engine);
    return false;
}

void engine_deinit(struct engine *engine)
{
    manager_deinit(&engine->manager);
    flights_deinit(&engine->flights);
}

struct engine *engine_new(const struct engine_rules *rules, const struct engine_io *io,
                          int64_t now_ns)
{
    struct engine *engine = malloc(sizeof(*engine));
    if (engine != NULL && !engine_init(engine, rules, io, now_ns)) {
        free(engine);
        engine = NULL;
    }
    return engine;
}

void engine_free(struct engine *engine)
{
    if (engine != NULL)
        engine_deinit(engine);
    free(engine);
}

void engine_client_init(struct engine_client *client, uint64_t id)
{
    memset(client, 0, sizeof(*client));
    TAILQ_INIT(&client->to_start);
    client->id = id;
}

/* --- configuration changes --- */

/* Check most of the rules that must not change. Of the strings, only key_prefix is compared, by its
 * address: all strings belong to the configuration and stay where they are. */
static void check_fixed(const struct engine_rules *a, const struct engine_rules *b)
{
    assert(a->round.node_count == b->round.node_count);
    assert(a->round.node_timeout_ns == b->round.node_timeout_ns);
    assert(a->round.min_validity_ns == b->round.min_validity_ns);
    assert(a->round.drift.rate_ppm == b->round.drift.rate_ppm);
    assert(a->round.drift.margin_ns == b->round.drift.margin_ns);
    assert(a->key_prefix == b->key_prefix);
    assert(a->max_ttl_ns == b->max_ttl_ns);
    assert(a->fence_ttl_ns == b->fence_ttl_ns);
    assert(a->waiters == b->waiters);
    assert(a->durable == b->durable);
}

void engine_apply_config(struct engine *engine, const struct engine_rules *rules)
{
    struct engine_rules *own = &engine->rules;
    check_fixed(own, rules);
    own->max_hold_ns = rules->max_hold_ns;
    own->max_extensions = rules->max_extensions;
    own->backoff_min_ns = rules->backoff_min_ns;
    own->backoff_max_ns = rules->backoff_max_ns;
    own->waiters_per_resource = rules->waiters_per_resource;
    own->fence_always = rules->fence_always;
    memcpy(own->logins, rules->logins, sizeof(own->logins));
    grants_set_timers(&engine->manager);
}

/* --- settled rounds --- */

/* Do what follows from a round's outcome. Returns false if the round granted a lock but the grant
 * reached no client. *next: set if the round belongs to a BREAK that continues with another
 * round. */
static bool on_settled(struct lock_manager *manager, struct flight *flight, struct breaking **next,
                       int64_t now_ns)
{
    struct resource *resource = resource_of(flight->key);
    switch (flight->round.kind) {
    case ROUND_ACQUIRE:
        return waits_on_settled(manager, flight, now_ns);
    case ROUND_EXTEND:
        grants_on_extended(manager, flight, now_ns);
        break;
    case ROUND_RELEASE:
        if (flight->round.outcome != OUTCOME_OK) {
            flights_release_frozen(manager->flights, flight, now_ns);
            break;
        }
        extension_limits_forget(&manager->extension_limits, flight->token);
        if (flight->swap_nodes == 0)
            queue_on_released(&resource->queue, now_ns);
        break;
    case ROUND_STATUS:
        if (flight->survey != NULL)
            survey_on_settled(manager, flight, now_ns);
        break;
    case ROUND_FREEZE:
        break;
    }
    if (flight->breaking != NULL)
        *next = breaks_on_settled(manager, flight, now_ns);
    if (flight->pending != NULL)
        manager_reply_round(manager, flight, now_ns);
    return true;
}

static void settle_flight(struct engine *engine, struct flight *flight, int64_t now_ns)
{
    struct lock_manager *manager = &engine->manager;
    struct resource *resource = resource_of(flight->key);
    struct breaking *to_break = NULL;
    bool delivered = on_settled(manager, flight, &to_break, now_ns);
    flights_conclude(&engine->flights, flight, delivered, now_ns);
    /* After flights_conclude(), which may write the undo of this round: the next waiter's commands
     * must reach each node after that undo. */
    waits_run(manager, resource, now_ns);
    if (to_break != NULL)
        breaks_continue(manager, resource, to_break, now_ns);
}

/* Act on what the masters have reported. News is never kept for later, so commands that follow from
 * it are written within the same call of the engine. */
static void take_news(struct engine *engine, int64_t now_ns)
{
    const struct flights_news news = engine->flights.news;
    engine->flights.news = (struct flights_news){0};
    for (uint32_t rest = news.votes_lost; rest != 0; rest = nodes_after_first(rest))
        grants_warn(&engine->manager, nodes_first(rest), news.lost_for[nodes_first(rest)]);
    news_take(&engine->manager, &news, now_ns);
}

/* The only place that acts on settled rounds and on news from the layer below. At its end it
 * frees the resources that nothing uses any more. */
static void finish(struct engine *engine, int64_t now_ns)
{
    struct flight *flight;
    for (;;) {
        if (engine->flights.news.any)
            take_news(engine, now_ns);
        else if ((flight = TAILQ_FIRST(&engine->flights.settled)) != NULL)
            settle_flight(engine, flight, now_ns);
        else if (!TAILQ_EMPTY(&engine->manager.semaphores.to_serve))
            slots_run(&engine->manager, now_ns);
        else if (!requests_start_next(&engine->manager, now_ns))
            break;
    }
    resources_sweep(&engine->manager.resources, &engine->flights.idle_keys);
}

/* --- requests --- */

void engine_submit(struct engine *engine, struct engine_client *client,
                   const struct request *request, int64_t now_ns)
{
    engine_catch_up(engine, now_ns);
    requests_submit(&engine->manager, client, request, now_ns);
    finish(engine, now_ns);
}

void engine_client_end(struct engine *engine, struct engine_client *client, enum engine_end how,
                       int64_t now_ns)
{
    engine_catch_up(engine, now_ns);
    requests_on_end(&engine->manager, client, how, now_ns);
    finish(engine, now_ns);
}

/* --- masters --- */

void engine_on_connected(struct engine *engine, unsigned node, enum channel channel, int64_t now_ns)
{
    engine_catch_up(engine, now_ns);
    replies_on_connected(&engine->flights, node, channel, now_ns);
    finish(engine, now_ns);
}

void engine_on_closed(struct engine *engine, unsigned node, enum channel channel,
                      enum reason reason, int64_t now_ns)
{
    /* This comes before the due timers, so that they write nothing to the closed connection. */
    replies_on_closed(&engine->flights, node, channel, reason, now_ns);
    engine_catch_up(engine, now_ns);
    finish(engine, now_ns);
}

unsigned engine_on_replies(struct engine *engine, unsigned node, enum channel channel,
                           const struct redis_reply *reply, unsigned count, int64_t now_ns)
{
    unsigned kept = 0;
    engine_catch_up(engine, now_ns);
    if (channel == CHANNEL_COMMANDS)
        kept = replies_keep_unfenced_yes(&engine->flights, node, reply, count, now_ns);
    if (kept > 0)
        return kept;
    bool open = replies_on_reply(&engine->flights, node, channel, reply, now_ns);
    finish(engine, now_ns);
    return open ? 1 : 0;
}

void engine_self_test(struct engine *engine, unsigned node, int64_t now_ns)
{
    self_test_start(&engine->flights, node, now_ns);
}

/* --- the end of a pass --- */

/* Can a held-back request start? It can if many have started in one pass, or the limit has grown.
 */
static bool may_start_more(const struct engine *engine)
{
    return engine->manager.start_queue.length > 0 && flights_has_room(&engine->flights);
}

bool engine_wants_flush(const struct engine *engine)
{
    return replies_wants_flush(&engine->flights) || grants_want_renewals(&engine->manager) ||
           engine->manager.timers_left == 0 || engine->manager.starts_left == 0;
}

void engine_flush(struct engine *engine, int64_t now_ns)
{
    grants_renew(&engine->manager, now_ns);
    replies_flush(&engine->flights, now_ns);
    flights_adapt(&engine->flights, now_ns);
    /* Rounds that started now would need one more flush, before the sockets are read again. */
    engine->manager.starts_left = 0;
    finish(engine, now_ns);
    engine->manager.starts_left = LIMIT_STARTS;
    engine->manager.timers_left = LIMIT_TIMERS;
    engine->flushed_ns = now_ns;
}

/* --- time --- */

static void on_timer(struct lock_manager *manager, struct timer *timer, int64_t now_ns)
{
    switch ((enum manager_timer)timer->kind) {
    case TIMER_WAIT_DEADLINE:
        requests_on_deadline(
            manager,
            (struct pending_request *)((char *)timer -
                                       offsetof(struct pending_request, waiter.wait_deadline)),
            now_ns);
        break;
    case TIMER_WAKE:
        waits_run(manager, (struct resource *)((char *)timer - offsetof(struct resource, wake)),
                  now_ns);
        break;
    case TIMER_LOCK:
        grants_on_timer(manager, (struct lock *)((char *)timer - offsetof(struct lock, timer)),
                        now_ns);
        break;
    }
}

void engine_catch_up(struct engine *engine, int64_t now_ns)
{
    struct lock_manager *manager = &engine->manager;
    struct timer *timer;
    if (manager->hold_timers.first_ns > now_ns &&
        (manager->timers.first_ns > now_ns || manager->timers_left == 0))
        return;
    while ((timer = timers_take(&manager->hold_timers, now_ns)) != NULL)
        on_timer(manager, timer, now_ns);
    while (manager->timers_left > 0 && (timer = timers_take(&manager->timers, now_ns)) != NULL) {
        manager->timers_left--;
        on_timer(manager, timer, now_ns);
    }
    finish(engine, now_ns);
}

int64_t engine_deadline_ns(const struct engine *engine)
{
    int64_t deadline_ns =
        min(engine->manager.hold_timers.first_ns, engine->manager.timers.first_ns);
    deadline_ns = min(deadline_ns, flights_deadline_ns(&engine->flights));
    deadline_ns = min(deadline_ns, replies_deadline_ns(&engine->flights));
    /* Go on at once, but after the sockets have been read. */
    return may_start_more(engine) ? min(deadline_ns, engine->flushed_ns) : deadline_ns;
}

void engine_on_timer(struct engine *engine, int64_t heard_ns, int64_t now_ns)
{
    assert(heard_ns <= now_ns);
    engine_catch_up(engine, now_ns);
    flights_on_deadline(&engine->flights, heard_ns, now_ns);
    replies_on_timer(&engine->flights, heard_ns, now_ns);
    finish(engine, now_ns);
}

/* --- shutdown --- */

void engine_drain(struct engine *engine, int64_t now_ns)
{
    engine->manager.draining = true;
    grants_lose_all(&engine->manager);
    slots_drain(&engine->manager);
    waits_drain(&engine->manager, now_ns);
    finish(engine, now_ns);
}

void engine_abandon(struct engine *engine, int64_t now_ns)
{
    requests_abandon_all(&engine->manager, now_ns);
    finish(engine, now_ns);
}

bool engine_busy(const struct engine *engine)
{
    const struct master *masters = engine->flights.masters;
    bool busy = flights_deadline_ns(&engine->flights) != INT64_MAX ||
                engine->manager.start_queue.length > 0;
    for (unsigned i = 0; i < engine->flights.node_count; i++)
        busy = busy || (masters[i].link.state == LINK_UP && masters[i].link.outstanding_count > 0);
    return busy;
}

bool engine_takes_requests(const struct engine *engine)
{
    return admission_takes_requests(&engine->flights.admission);
}

size_t engine_held_back(const struct engine *engine)
{
    return engine->manager.start_queue.length;
}
