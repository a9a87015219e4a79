#include "engine/locks/intake.h"

#include "engine/locks/waits.h"
#include "protocol/units.h"

/* The limit that this LOCK exceeds; NULL: none. */
static const char *limit_exceeded(const struct lock_manager *manager, const struct request *request,
                                  const struct resource *resource)
{
    if (request->hold && manager->holding >= LIMIT_HOLDS)
        return "holds";
    if (request->wait_ms == 0)
        return manager->impatient >= manager_impatient_max() ||
                       resource->impatient > manager_impatient_share()
                   ? "operations"
                   : NULL;
    if (resource->waits >= manager->rules->waiters_per_resource)
        return "waiters_per_resource";
    return manager->waiting >= manager->rules->waiters ? "waiters" : NULL;
}

/* Does this LOCK get its reply without a round? It does if it has no WAIT, no round is under way,
 * and either there are waiters before it or the queue pauses for a far waiter. It does not if the
 * first waiter is a LOCK without WAIT whose round waits for its start: the result of that round is
 * the reply to both. Nor does it if the first waiter is a ready seeker, which makes way for it. */
static bool is_refused_at_once(const struct resource *resource, int64_t now_ns)
{
    const struct queue *queue = &resource->queue;
    struct waiter *first = TAILQ_FIRST(&queue->waiters);
    if (queue->phase == QUEUE_ACQUIRING)
        return false;
    if (first == NULL)
        return queue_yields(queue, now_ns);
    if (first->seeks)
        return !seeker_of(first)->ready;
    return pending_of(first)->waits || !pending_of(first)->awaits_start;
}

/* A LOCK without WAIT does not overtake one that waits for a slot. */
static bool overtakes(const struct resource *resource)
{
    const struct pending_request *next =
        resource->semaphore != NULL ? semaphore_next(resource->semaphore) : NULL;
    return next != NULL && next->waits;
}

/* Refuse a LOCK without WAIT, if it can be seen now that it would not be granted. */
static bool refuse_at_once(struct lock_manager *manager, struct engine_client *client,
                           const struct request *request, struct resource *resource, int64_t now_ns)
{
    struct reply reply;
    if (request->wait_ms > 0)
        return false;
    if (request->slots > 0 && overtakes(resource))
        reply = waits_slots_reply(manager, resource->semaphore, request->slots, now_ns, TIMER_NEVER,
                                  now_ns);
    else if (request->slots == 0 && is_refused_at_once(resource, now_ns))
        reply = waits_last_reply(manager, resource, queue_hint_ms(&resource->queue, now_ns), now_ns,
                                 now_ns);
    else
        return false;
    manager_refuse(manager, client, request, ROUND_ACQUIRE, &reply);
    return true;
}

/* Count the LOCK, and set the end of its wait. */
static void count(struct lock_manager *manager, struct pending_request *pending,
                  const struct request *request, int64_t now_ns)
{
    struct resource *resource = pending->resource;
    manager->holding += pending->hold;
    pending->waiter.wait_deadline = (struct timer){.kind = TIMER_WAIT_DEADLINE};
    if (!pending->waits) {
        manager->impatient++;
        resource->impatient++;
        return;
    }
    manager->waiting++;
    if (resource->waits++ == 0) {
        LIST_INSERT_HEAD(&manager->waited_for, resource, waited_for);
        manager->waited_for_count++;
    }
    timers_set(&manager->timers, &pending->waiter.wait_deadline,
               now_ns + request->wait_ms * NS_PER_MS);
}

static void join_queue(struct lock_manager *manager, struct pending_request *pending,
                       int64_t now_ns)
{
    struct resource *resource = pending->resource;
    struct queue *queue = &resource->queue;
    bool first = queue->length == 0;
    if (first)
        resource->last_outcome = OUTCOME_HELD;
    pending->waiter.seeks = false;
    queue_join(queue, &pending->waiter, now_ns);
    if (pending->waits) {
        waits_watch(resource, now_ns);
        return;
    }
    queue_note_timed_out(queue, &pending->waiter);
    if (!first && queue->phase != QUEUE_ACQUIRING)
        waits_set_start_deadline(manager, pending, now_ns);
}

const char *intake_lock(struct lock_manager *manager, struct engine_client *client,
                        const struct request *request, struct resource *resource, int64_t now_ns)
{
    if (refuse_at_once(manager, client, request, resource, now_ns))
        return NULL;
    const char *limit = limit_exceeded(manager, request, resource);
    if (limit != NULL)
        return limit;
    if (request->slots > 0 && !semaphore_reserve(&manager->semaphores, resource, request->slots))
        return "slots";
    struct pending_request *pending = pending_open(manager, client, request, now_ns);
    if (pending == NULL)
        return "operations";
    pending->resource = resource;
    pending->ttl_ns = request->ttl_ms * NS_PER_MS;
    pending->waits = request->wait_ms > 0;
    pending->fenced = request->fence || manager->rules->fence_always;
    pending->hold = request->hold;
    pending->lingers = request->linger;
    pending->slots = request->slots;
    count(manager, pending, request, now_ns);
    if (pending->slots > 0) {
        if (!pending->waits)
            waits_set_start_deadline(manager, pending, now_ns);
        semaphore_join(&manager->semaphores, resource->semaphore, pending);
    } else {
        join_queue(manager, pending, now_ns);
        waits_run(manager, resource, now_ns);
    }
    return NULL;
}
