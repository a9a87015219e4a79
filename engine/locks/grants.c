#include "engine/locks/grants.h"

#include <assert.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"

const struct engine_loss_words engine_losses[ENGINE_LOSSES] = {
    [LOSS_GONE] = {"gone", "another client has it, or it was released elsewhere"},
    [LOSS_LIMIT] = {"limit", "it was held for max_hold"},
    [LOSS_LATE] = {"late", "the extension was granted too late"},
    [LOSS_NOQUORUM] = {"noquorum", "too few masters voted for its extension"},
    [LOSS_TIMED_OUT] = {"overdue", "the daemon was stopped, or was too busy to extend it"},
    [LOSS_SHUTDOWN] = {"shutdown", "the daemon was stopped"},
};

static struct lock *lock_with_token(const struct resource *resource, const char *token)
{
    struct lock *lock = resource->lock;
    return lock != NULL && memcmp(lock->token, token, LIMIT_TOKEN) == 0 ? lock : NULL;
}

/* Does the connection of this client hold the lock? Once it has stopped holding the lock, it never
 * holds it again. */
static bool is_held_by(const struct lock *lock, const struct engine_client *client)
{
    return lock != NULL && client != NULL && lock->client == client;
}

/* Set the timer of the lock to its next action. */
static void set_timer(struct lock_manager *manager, struct lock *lock)
{
    struct timers *timers = &manager->timers;
    int64_t at_ns = lock->ends_ns;
    if (lock->client != NULL) {
        timers = &manager->hold_timers;
        int64_t renew_ns = hold_renew_ns(&lock->hold, manager->rules->max_hold_ns);
        at_ns = hold_lost_ns(&lock->hold);
        if (!lock->client->ended && lock->renewal == NULL && !lock->due.set && renew_ns < at_ns)
            at_ns = renew_ns;
    }
    timers_set(timers, &lock->timer, at_ns);
}

void grants_set_timers(struct lock_manager *manager)
{
    struct lock *lock;
    TAILQ_FOREACH (lock, &manager->held, entry)
        set_timer(manager, lock);
}

/* Stop extending the lock: from now on it is treated as a lock without HOLD. */
static void end_hold(struct lock_manager *manager, struct lock *lock)
{
    assert(lock->client != NULL);
    timers_set(&manager->hold_timers, &lock->timer, TIMER_NEVER);
    LIST_REMOVE(lock, of_client);
    lock->client->hold_count--;
    lock->client = NULL;
    manager->holding--;
    if (lock->renewal != NULL)
        lock->renewal->renews = NULL;
    lock->renewal = NULL;
    timers_set(&manager->due, &lock->due, TIMER_NEVER);
    TAILQ_REMOVE(&manager->held, lock, entry);
    manager->held_count--;
    TAILQ_INSERT_TAIL(&manager->unheld, lock, entry);
    set_timer(manager, lock);
}

void grants_forget(struct lock_manager *manager, struct lock *lock)
{
    struct resource *resource = lock->resource;
    if (lock->client != NULL)
        end_hold(manager, lock);
    TAILQ_REMOVE(&manager->unheld, lock, entry);
    timers_set(&manager->timers, &lock->timer, TIMER_NEVER);
    resource->lock = NULL;
    pool_give(&manager->locks, lock);
    flight_note_idle(&manager->flights->idle_keys, &resource->key);
}

static void push(struct lock_manager *manager, const struct lock *lock, bool lost, const char *node,
                 const char *reason)
{
    const struct push push = {
        .kind = lost ? PUSH_LOST : PUSH_WARN,
        .resource = lock->resource->name,
        .resource_len = lock->resource->name_len,
        .token = lock->token,
        .node = node,
        .reason = reason,
    };
    if (!lock->client->disconnected)
        manager->io->push(manager->io->context, lock->client, &push);
}

/* Report a HOLD as lost. This is final: the client is told to stop, whatever happens to the lock
 * afterwards. */
static void lose(struct lock_manager *manager, struct lock *lock, enum engine_loss loss)
{
    manager->stats->lost++;
    manager->stats->losses[loss]++;
    push(manager, lock, true, NULL, engine_losses[loss].word);
    end_hold(manager, lock);
}

/* The nodes that hold the key: those that voted yes before the round was decided, and those whose
 * vote is pending. */
static uint32_t holding_nodes_of(const struct round *round)
{
    return round->yes | round->pending;
}

/* --- granted --- */

bool grants_end(struct lock_manager *manager, struct resource *resource, const char *token,
                const struct engine_client *client)
{
    struct lock *lock = lock_with_token(resource, token);
    if (lock == NULL)
        return false;
    if (lock->client != NULL && lock->client != client)
        lose(manager, lock, LOSS_GONE);
    grants_forget(manager, lock);
    return true;
}

/* Take a lock from the pool. This never fails: the number of HOLDs is limited, and a lock without
 * HOLD can be forgotten. */
static struct lock *take_lock(struct lock_manager *manager)
{
    struct lock *lock = pool_take(&manager->locks);
    if (lock == NULL) {
        grants_forget(manager, TAILQ_FIRST(&manager->unheld));
        lock = pool_take(&manager->locks);
    }
    assert(lock != NULL);
    return lock;
}

void grants_on_granted(struct lock_manager *manager, const struct flight *flight,
                       struct engine_client *client, bool hold, bool lingers, int64_t now_ns)
{
    struct resource *resource = resource_of(flight->key);
    const struct round *round = &flight->round;
    if (resource->lock != NULL && resource->lock->client != NULL)
        lose(manager, resource->lock, LOSS_GONE);
    if (resource->lock != NULL)
        grants_forget(manager, resource->lock);

    struct lock *lock = take_lock(manager);
    lock->timer = (struct timer){.kind = TIMER_LOCK};
    lock->due = (struct timer){0};
    lock->client = NULL;
    lock->renewal = NULL;
    lock->failing = LOSS_TIMED_OUT;
    lock->lingers = lingers;
    lock->resource = resource;
    resource->lock = lock;
    memcpy(lock->token, flight->token, LIMIT_TOKEN);
    memcpy(lock->client_label, client->label, sizeof(lock->client_label));
    lock->client_id = client->id;
    lock->holding_nodes = holding_nodes_of(round);
    lock->ends_ns = now_ns + round->ttl_ns;
    hold_init(&lock->hold, round->ttl_ns, round->started_ns, round->until_ns);
    if (hold) {
        lock->client = client;
        LIST_INSERT_HEAD(&client->holds, lock, of_client);
        client->hold_count++;
        manager->holding++;
        TAILQ_INSERT_TAIL(&manager->held, lock, entry);
        manager->held_count++;
    } else {
        TAILQ_INSERT_TAIL(&manager->unheld, lock, entry);
    }
    set_timer(manager, lock);
    if (hold && manager->draining)
        lose(manager, lock, LOSS_SHUTDOWN);
}

/* --- extended --- */

const char *grants_refuse_extension(const struct lock_manager *manager,
                                    const struct engine_client *client,
                                    const struct request *request, const struct resource *resource,
                                    int64_t now_ns)
{
    const struct lock *lock = lock_with_token(resource, request->token);
    int64_t ttl_ns = request->ttl_ms * NS_PER_MS;
    if (!is_held_by(lock, client))
        return extension_limits_refuse(&manager->extension_limits, request->token, ttl_ns, now_ns);
    return hold_may_extend(&lock->hold, ttl_ns, manager->rules->max_hold_ns, now_ns) ? NULL
                                                                                     : "hold";
}

/* An extension by a client or by the daemon was granted, so the lock lives longer. */
static void extend_lock(struct lock *lock, const struct round *round, int64_t now_ns)
{
    hold_on_extended(&lock->hold, round->until_ns);
    lock->holding_nodes = holding_nodes_of(round);
    lock->failing = LOSS_TIMED_OUT;
    lock->ends_ns = max(lock->ends_ns, now_ns + round->ttl_ns);
    if (lock->resource->queue.length > 0)
        queue_on_held(&lock->resource->queue, lock->ends_ns, now_ns);
}

static void retry(const struct lock_manager *manager, struct lock *lock, enum engine_loss failing,
                  int64_t now_ns)
{
    lock->failing = failing;
    hold_on_failed(&lock->hold, manager->rules->backoff_min_ns, now_ns);
}

static void on_renewed(struct lock_manager *manager, struct lock *lock, const struct round *round,
                       int64_t now_ns)
{
    lock->renewal = NULL;
    if (round->outcome == OUTCOME_GONE) {
        grants_end(manager, lock->resource, lock->token, NULL);
        return;
    }
    if (round->outcome == OUTCOME_OK)
        extend_lock(lock, round, now_ns);
    else
        retry(manager, lock, round->outcome == OUTCOME_LATE ? LOSS_LATE : LOSS_NOQUORUM, now_ns);
    set_timer(manager, lock);
}

void grants_on_extended(struct lock_manager *manager, struct flight *flight, int64_t now_ns)
{
    struct lock *lock = flight->renews;
    const struct round *round = &flight->round;
    flight->renews = NULL;
    manager->renewing -= flight->by_daemon;
    if (lock != NULL) {
        on_renewed(manager, lock, round, now_ns);
        return;
    }
    if (flight->by_daemon)
        return;
    lock = lock_with_token(resource_of(flight->key), flight->token);
    /* If the client holds the lock now, it has held the lock since before the extension began. If
     * its HOLD was lost meanwhile, the extension is counted. */
    const struct engine_client *client = flight->pending != NULL ? flight->pending->client : NULL;
    if (round->outcome == OUTCOME_OK && !is_held_by(lock, client))
        extension_limits_count(&manager->extension_limits, flight->token, now_ns);
    if (lock == NULL)
        return;
    if (round->outcome == OUTCOME_OK) {
        extend_lock(lock, round, now_ns);
        set_timer(manager, lock);
    } else if (round->outcome == OUTCOME_GONE) {
        grants_end(manager, lock->resource, lock->token, NULL);
    }
}

static void renew(struct lock_manager *manager, struct lock *lock, int64_t now_ns)
{
    struct flight *flight =
        flights_open(manager->flights, &lock->resource->key, ROUND_EXTEND, lock->hold.ttl_ns);
    if (flight == NULL) {
        retry(manager, lock, LOSS_NOQUORUM, now_ns);
        set_timer(manager, lock);
        return;
    }
    manager->stats->renewals++;
    manager->renewing++;
    memcpy(flight->token, lock->token, LIMIT_TOKEN);
    flight->by_daemon = true;
    flight->renews = lock;
    lock->renewal = flight;
    set_timer(manager, lock);
    flights_start(manager->flights, flight, now_ns);
}

bool grants_want_renewals(const struct lock_manager *manager)
{
    return manager->renewing < manager->renewals_max && manager->due.first_ns != TIMER_NEVER;
}

void grants_renew(struct lock_manager *manager, int64_t now_ns)
{
    while (grants_want_renewals(manager)) {
        /* Take the lock that would be lost first. */
        struct timer *due = timers_take(&manager->due, TIMER_NEVER - 1);
        renew(manager, (struct lock *)((char *)due - offsetof(struct lock, due)), now_ns);
    }
}

void grants_on_timer(struct lock_manager *manager, struct lock *lock, int64_t now_ns)
{
    if (lock->client == NULL) {
        grants_forget(manager, lock);
    } else if (lock->client->ended) {
        end_hold(manager, lock);
    } else if (now_ns < hold_lost_ns(&lock->hold)) {
        timers_set(&manager->due, &lock->due, hold_lost_ns(&lock->hold));
        set_timer(manager, lock);
    } else if (hold_renew_ns(&lock->hold, manager->rules->max_hold_ns) == INT64_MAX) {
        lose(manager, lock, LOSS_LIMIT);
    } else {
        lose(manager, lock, lock->failing);
    }
}

/* --- the end of a connection, of a vote, and of the daemon --- */

void grants_stop_extending(struct lock_manager *manager, struct engine_client *client)
{
    struct lock *lock;
    client->ended = true;
    LIST_FOREACH (lock, &client->holds, of_client) {
        timers_set(&manager->due, &lock->due, TIMER_NEVER);
        set_timer(manager, lock);
    }
}

void grants_abandon(struct lock_manager *manager, struct engine_client *client)
{
    struct lock *lock;
    while ((lock = LIST_FIRST(&client->holds)) != NULL)
        end_hold(manager, lock);
}

void grants_lose_all(struct lock_manager *manager)
{
    struct lock *lock;
    while ((lock = TAILQ_FIRST(&manager->held)) != NULL)
        lose(manager, lock, LOSS_SHUTDOWN);
}

void grants_warn(struct lock_manager *manager, unsigned node, enum reason reason)
{
    struct lock *lock;
    TAILQ_FOREACH (lock, &manager->held, entry) {
        if (!(lock->holding_nodes & nodes_only(node)))
            continue;
        lock->holding_nodes &= ~nodes_only(node);
        push(manager, lock, false, manager->rules->node_names[node], reason_word(reason));
    }
}
