#include "engine/locks/queue_timer.h"

#include "engine/round/node_set.h"

/* A far waiter seeks this resource, and nothing else needs it. Keep it, because otherwise the pause
 * of its queue would be lost. Returns when to check again. */
static int64_t keep_sought(struct lock_manager *manager, struct resource *resource, int64_t now_ns)
{
    struct queue *queue = &resource->queue;
    bool in_use = resource->lock != NULL || !LIST_EMPTY(&resource->key.flights);
    bool keep = queue->sought > 0 && !manager->draining && (in_use || now_ns < queue->sought_ns) &&
                (resource->kept || manager->kept_count < LIMIT_FAR_RESOURCES);
    manager->kept_count = manager->kept_count - resource->kept + keep;
    resource->kept = keep;
    if (!keep)
        queue->sought = 0;
    else if (now_ns >= queue->sought_ns)
        queue->sought_ns = now_ns + QUEUE_SOUGHT_NS;
    return keep ? queue->sought_ns : TIMER_NEVER;
}

/*
 * The earliest time at which a quorum of the masters may vote, as far as is known; TIMER_NEVER: not
 * before an event brings a vote back. A master whose vote counts as lost here (vote_reason) is
 * reported when it votes again, and then update_queues() runs each queue. noinline: keeps this code
 * out of the usual case, in which a quorum votes.
 */
__attribute__((noinline)) static int64_t quorum_votes_ns(const struct lock_manager *manager,
                                                         int64_t now_ns)
{
    const struct flights *flights = manager->flights;
    int64_t until_ns[LIMIT_NODES];
    uint32_t lost = 0;
    for (unsigned i = 0; i < flights->node_count; i++)
        if (flights->masters[i].vote_reason != REASON_NONE) {
            lost |= nodes_only(i);
            until_ns[i] = master_refuses_until_ns(&flights->masters[i], now_ns);
        }
    unsigned votes = flights->node_count - nodes_count(lost);
    unsigned quorum = manager->rules->round.quorum;
    return votes >= quorum ? now_ns : nodes_quorum_ns(quorum, votes, lost, until_ns);
}

int64_t queue_timer_rest_until_ns(const struct lock_manager *manager,
                                  const struct resource *resource, int64_t now_ns)
{
    const struct waiter *first = TAILQ_FIRST(&resource->queue.waiters);
    if (resource->queue.phase != QUEUE_PAUSING || resource->last_outcome != OUTCOME_NOQUORUM ||
        first == NULL || first->timed_out)
        return 0;
    int64_t votes_ns = quorum_votes_ns(manager, now_ns);
    return votes_ns > now_ns ? votes_ns : 0;
}

/* noinline: keeps this code out of the usual case, in which there are no waiters, near or far. */
__attribute__((noinline)) void queue_timer_set(struct lock_manager *manager,
                                               struct resource *resource,
                                               const struct pending_request *first, int64_t now_ns)
{
    int64_t wake_ns =
        max(queue_wake_ns(&resource->queue), queue_timer_rest_until_ns(manager, resource, now_ns));
    /* While the first waiter is in the start queue, no timer is needed: the queue runs again when
     * the turn of that waiter has come, or when a ready seeker has a LOCK to serve. */
    if ((first != NULL && first->awaits_start) ||
        (resource->seeker != NULL && resource->seeker->ready))
        wake_ns = TIMER_NEVER;
    if (resource->queue.length == 0 && (resource->queue.sought > 0 || resource->kept))
        wake_ns = keep_sought(manager, resource, now_ns);
    manager_wake_queue(manager, resource, wake_ns);
}
