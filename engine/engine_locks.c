#include <assert.h>
#include <string.h>

#include "engine/engine_parts.h"
#include "engine/round/node_set.h"
#include "protocol/units.h"

bool engine_locks_init(struct engine *engine)
{
    alarms_init(&engine->due);
    engine->renewals_max = LIMIT_RENEWALS;
    TAILQ_INIT(&engine->held);
    TAILQ_INIT(&engine->plain);
    return pool_init(&engine->locks, sizeof(struct lock), LIMIT_LOCKS);
}

/* --- why one is lost --- */

static const struct {
    const char *word;
    const char *text;
} losses[ENGINE_LOSSES] = {
#define X(word, text) {word, text},
    ENGINE_LOSS_TABLE(X)
#undef X
};

const char *engine_loss_word(unsigned loss)
{
    assert(loss < ENGINE_LOSSES);
    return losses[loss].word;
}

const char *engine_loss_text(unsigned loss)
{
    assert(loss < ENGINE_LOSSES);
    return losses[loss].text;
}

unsigned engine_loss_of(const char *word)
{
    unsigned loss = 0;
    while (loss < ENGINE_LOSSES - 1 && strcmp(losses[loss].word, word) != 0)
        loss++;
    return loss;
}

/* --- what is known --- */

static struct lock *known_lock(const struct resource *resource, const char *token)
{
    struct lock *lock = resource->lock;
    return lock != NULL && memcmp(lock->token, token, LIMIT_TOKEN) == 0 ? lock : NULL;
}

/* Is it this client's connection that holds it? Once it is not, it never is again. */
static bool is_held_by(const struct lock *lock, const struct engine_client *client)
{
    return lock != NULL && client != NULL && lock->client == client;
}

/* When something is to be done about it. */
static void set_alarm(struct engine *engine, struct lock *lock)
{
    int64_t at_ns = lock->ends_ns;
    if (lock->client != NULL) {
        int64_t renew_ns = hold_renew_ns(&lock->hold, engine->rules.max_hold_ns);
        at_ns = hold_lost_ns(&lock->hold);
        if (lock->renewal == NULL && !lock->due.set && renew_ns < at_ns)
            at_ns = renew_ns;
    }
    alarms_set(&engine->alarms, &lock->alarm, at_ns);
}

void engine_set_hold_alarms(struct engine *engine)
{
    struct lock *lock;
    TAILQ_FOREACH (lock, &engine->held, entry)
        set_alarm(engine, lock);
}

/* The daemon does not extend it any more: from now on a lock like any other. */
static void let_go(struct engine *engine, struct lock *lock)
{
    assert(lock->client != NULL);
    LIST_REMOVE(lock, of_client);
    lock->client->hold_count--;
    lock->client = NULL;
    engine->holding--;
    if (lock->renewal != NULL)
        lock->renewal->renews = NULL;
    lock->renewal = NULL;
    alarms_set(&engine->due, &lock->due, ALARM_NEVER);
    TAILQ_REMOVE(&engine->held, lock, entry);
    engine->held_count--;
    TAILQ_INSERT_TAIL(&engine->plain, lock, entry);
    set_alarm(engine, lock);
}

static void forget_lock(struct engine *engine, struct lock *lock)
{
    struct resource *resource = lock->resource;
    if (lock->client != NULL)
        let_go(engine, lock);
    TAILQ_REMOVE(&engine->plain, lock, entry);
    alarms_set(&engine->alarms, &lock->alarm, ALARM_NEVER);
    resource->lock = NULL;
    pool_give(&engine->locks, lock);
    resource_note_idle(&engine->resources, resource);
}

static void push(struct engine *engine, const struct lock *lock, bool lost, const char *node,
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
    if (!lock->client->gone)
        engine->io.push(engine->io.context, lock->client, &push);
}

/* Final: whatever becomes of it, its client is told to stop. */
static void lose(struct engine *engine, struct lock *lock, const char *reason)
{
    engine->stats.lost++;
    engine->stats.losses[engine_loss_of(reason)]++;
    push(engine, lock, true, NULL, reason);
    let_go(engine, lock);
}

/* The nodes that have it: those that said so in time for the outcome, and those that have not
 * answered yet, but are about to. */
static uint32_t carriers_of(const struct round *round)
{
    return round->yes | round->pending;
}

/* --- granted --- */

bool engine_end_lock(struct engine *engine, struct resource *resource, const char *token,
                     const struct engine_client *client)
{
    struct lock *lock = known_lock(resource, token);
    if (lock == NULL)
        return false;
    if (lock->client != NULL && lock->client != client)
        lose(engine, lock, "gone");
    forget_lock(engine, lock);
    return true;
}

/* There is always one: those with HOLD are bounded, the others can be forgotten. */
static struct lock *take_lock(struct engine *engine)
{
    struct lock *lock = pool_take(&engine->locks);
    if (lock == NULL) {
        forget_lock(engine, TAILQ_FIRST(&engine->plain));
        lock = pool_take(&engine->locks);
    }
    assert(lock != NULL);
    return lock;
}

void engine_on_granted(struct engine *engine, const struct operation *operation,
                       struct engine_client *client, bool hold, bool lingers, int64_t now_ns)
{
    struct resource *resource = operation->resource;
    const struct round *round = &operation->round;
    if (resource->lock != NULL && resource->lock->client != NULL)
        lose(engine, resource->lock, "gone");
    if (resource->lock != NULL)
        forget_lock(engine, resource->lock);

    struct lock *lock = take_lock(engine);
    lock->alarm = (struct alarm){.kind = ALARM_LOCK};
    lock->due = (struct alarm){0};
    lock->client = NULL;
    lock->renewal = NULL;
    lock->failed = NULL;
    lock->lingers = lingers;
    lock->resource = resource;
    resource->lock = lock;
    memcpy(lock->token, operation->token, LIMIT_TOKEN);
    memcpy(lock->client_label, client->label, sizeof(lock->client_label));
    lock->client_id = client->id;
    lock->carriers = carriers_of(round);
    lock->ends_ns = now_ns + round->ttl_ns;
    hold_init(&lock->hold, round->ttl_ns, round->started_ns, round->until_ns);
    if (hold) {
        lock->client = client;
        LIST_INSERT_HEAD(&client->holds, lock, of_client);
        client->hold_count++;
        engine->holding++;
        TAILQ_INSERT_TAIL(&engine->held, lock, entry);
        engine->held_count++;
    } else {
        TAILQ_INSERT_TAIL(&engine->plain, lock, entry);
    }
    set_alarm(engine, lock);
    if (hold && engine->draining)
        lose(engine, lock, "shutdown");
}

/* --- extended --- */

const char *engine_refuses_extension(const struct engine *engine,
                                     const struct engine_client *client,
                                     const struct request *request, const struct resource *resource,
                                     int64_t now_ns)
{
    const struct lock *lock = known_lock(resource, request->token);
    int64_t ttl_ns = request->ttl_ms * NS_PER_MS;
    if (!is_held_by(lock, client))
        return extensions_refuse(&engine->extensions, request->token, ttl_ns, now_ns);
    return hold_may_extend(&lock->hold, ttl_ns, engine->rules.max_hold_ns, now_ns) ? NULL : "hold";
}

/* It is known to live longer, whoever asked for that. */
static void prolong(struct lock *lock, const struct round *round, int64_t now_ns)
{
    hold_on_extended(&lock->hold, round->until_ns);
    lock->carriers = carriers_of(round);
    lock->failed = NULL;
    if (now_ns + round->ttl_ns > lock->ends_ns)
        lock->ends_ns = now_ns + round->ttl_ns;
    if (lock->resource->queue.length > 0)
        queue_on_held(&lock->resource->queue, lock->ends_ns, now_ns);
}

static void on_renewed(struct engine *engine, struct lock *lock, const struct round *round,
                       int64_t now_ns)
{
    lock->renewal = NULL;
    switch (round->outcome) {
    case OUTCOME_OK:
        prolong(lock, round, now_ns);
        break;
    case OUTCOME_GONE:
        lose(engine, lock, "gone");
        return;
    default:
        lock->failed = round->outcome == OUTCOME_LATE ? "late" : "noquorum";
        hold_on_failed(&lock->hold, engine->rules.backoff_min_ns, now_ns);
        break;
    }
    set_alarm(engine, lock);
}

void engine_on_extended(struct engine *engine, struct operation *operation, int64_t now_ns)
{
    struct lock *lock = operation->renews;
    const struct round *round = &operation->round;
    operation->renews = NULL;
    engine->renewing -= operation->of_daemon;
    if (lock != NULL) {
        on_renewed(engine, lock, round, now_ns);
        return;
    }
    if (operation->of_daemon)
        return;
    lock = known_lock(operation->resource, operation->token);
    /* Whoever holds it now has held it since this began: one that was lost meanwhile counts. */
    const struct engine_client *client = operation->call != NULL ? operation->call->client : NULL;
    if (round->outcome == OUTCOME_OK && !is_held_by(lock, client))
        extensions_count(&engine->extensions, operation->token, now_ns);
    if (lock == NULL)
        return;
    if (round->outcome == OUTCOME_OK) {
        prolong(lock, round, now_ns);
        set_alarm(engine, lock);
    } else if (round->outcome == OUTCOME_GONE && lock->client != NULL) {
        lose(engine, lock, "gone");
    }
}

static void renew(struct engine *engine, struct lock *lock, int64_t now_ns)
{
    struct operation *operation = operation_open(
        &engine->operations, lock->resource, &engine->rules.round, ROUND_EXTEND, lock->hold.ttl_ns);
    if (operation == NULL) {
        lock->failed = "noquorum";
        hold_on_failed(&lock->hold, engine->rules.backoff_min_ns, now_ns);
        set_alarm(engine, lock);
        return;
    }
    engine->stats.renewals++;
    engine->renewing++;
    memcpy(operation->token, lock->token, LIMIT_TOKEN);
    operation->of_daemon = true;
    operation->renews = lock;
    lock->renewal = operation;
    set_alarm(engine, lock);
    engine_start(engine, operation, now_ns);
}

bool engine_wants_renewals(const struct engine *engine)
{
    return engine->renewing < engine->renewals_max && engine->due.first_ns != ALARM_NEVER;
}

void engine_renew(struct engine *engine, int64_t now_ns)
{
    while (engine_wants_renewals(engine)) {
        /* The one that is lost first. */
        struct alarm *due = alarms_take(&engine->due, ALARM_NEVER - 1);
        renew(engine, (struct lock *)((char *)due - offsetof(struct lock, due)), now_ns);
    }
}

void engine_on_lock_alarm(struct engine *engine, struct lock *lock, int64_t now_ns)
{
    if (lock->client == NULL) {
        forget_lock(engine, lock);
    } else if (now_ns < hold_lost_ns(&lock->hold)) {
        alarms_set(&engine->due, &lock->due, hold_lost_ns(&lock->hold));
        set_alarm(engine, lock);
    } else if (hold_renew_ns(&lock->hold, engine->rules.max_hold_ns) == INT64_MAX) {
        lose(engine, lock, "limit");
    } else {
        lose(engine, lock, lock->failed != NULL ? lock->failed : "overdue");
    }
}

/* --- the end of a connection, and of the daemon --- */

static struct lock *first_to_release(const struct engine_client *client, bool by_quit)
{
    struct lock *lock = LIST_FIRST(&client->holds);
    while (lock != NULL && lock->lingers && !by_quit)
        lock = LIST_NEXT(lock, of_client);
    return lock;
}

void engine_release_holds(struct engine *engine, struct engine_client *client, bool by_quit,
                          int64_t now_ns)
{
    struct lock *lock;
    while ((lock = first_to_release(client, by_quit)) != NULL) {
        struct resource *resource = lock->resource;
        char token[LIMIT_TOKEN];
        memcpy(token, lock->token, LIMIT_TOKEN);
        forget_lock(engine, lock);
        engine_release(engine, resource, token, NULL, true, now_ns);
    }
}

void engine_abandon_holds(struct engine *engine, struct engine_client *client)
{
    struct lock *lock;
    while ((lock = LIST_FIRST(&client->holds)) != NULL)
        let_go(engine, lock);
}

void engine_lose_holds(struct engine *engine)
{
    struct lock *lock;
    while ((lock = TAILQ_FIRST(&engine->held)) != NULL)
        lose(engine, lock, "shutdown");
}

void engine_warn_holds(struct engine *engine, unsigned node, enum reason reason)
{
    struct lock *lock;
    TAILQ_FOREACH (lock, &engine->held, entry) {
        if (!(lock->carriers & nodes_only(node)))
            continue;
        lock->carriers &= ~nodes_only(node);
        push(engine, lock, false, engine->rules.node_names[node], reason_word(reason));
    }
}
