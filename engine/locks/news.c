#include "engine/locks/news.h"

#include "engine/locks/waits.h"
#include "engine/round/node_set.h"

/* A key probe or an undo has been answered with what holds the key. */
static void on_observed(struct lock_manager *manager, const struct flights_news *news,
                        int64_t now_ns)
{
    struct resource *resource = resource_of(news->observed);
    const struct answer *answer = &news->answer;
    const struct observation seen = {
        .held = answer->kind == ANSWER_HELD,
        .pttl_ms = answer->kind == ANSWER_HELD ? answer->pttl_ms : -1,
        .holder = answer->holder,
        .tracked = news->tracked,
    };
    if (answer->kind != ANSWER_FAILED)
        queue_on_observed(&resource->queue, news->observed_on, &seen, now_ns);
    else if (news->forgot_script &&
             link_refuses_vote(&manager->flights->masters[news->observed_on].link) == REASON_NONE)
        waits_probe_key(manager, resource, news->observed_on, REDIS_IN_FULL, now_ns);
    else
        queue_on_unobserved(&resource->queue, news->observed_on);
    waits_run(manager, resource, now_ns);
}

static void on_changed(struct lock_manager *manager, const struct flights_news *news,
                       int64_t now_ns)
{
    struct resource *resource =
        resource_find_key(&manager->resources, news->changed, news->changed_len);
    if (resource == NULL || resource->queue.length == 0)
        return;
    queue_on_changed(&resource->queue, news->changed_on);
    waits_run(manager, resource, now_ns);
}

/* The state of some nodes has changed: tell every queue. Later passes run those queues for which
 * this pass has no budget left. */
static void update_queues(struct lock_manager *manager, const struct flights_news *news,
                          int64_t now_ns)
{
    struct resource *resource;
    TAILQ_FOREACH (resource, &manager->resources.all, of_all) {
        struct queue *queue = &resource->queue;
        for (unsigned i = 0; i < manager->flights->node_count; i++) {
            if (news->probes_lost & nodes_only(i))
                queue_on_unobserved(queue, i);
            if (queue->length == 0)
                continue;
            /* untracked comes before probe_again, because a node that is probed again can be
             * tracked anew. */
            if (news->untracked & nodes_only(i))
                queue_on_untracked(queue, i, now_ns);
            if (news->probe_again & nodes_only(i))
                queue_on_changed(queue, i);
        }
        if (queue->length == 0)
            continue;
        if (manager_take_timer(manager))
            waits_run(manager, resource, now_ns);
        else
            manager_wake_queue(manager, resource, now_ns);
    }
}

void news_take(struct lock_manager *manager, const struct flights_news *news, int64_t now_ns)
{
    if (news->contended != NULL)
        queue_on_contention(&resource_of(news->contended)->queue, news->contention_need_ns);
    if (news->sought != NULL) {
        queue_on_sought(&resource_of(news->sought)->queue, news->sought_need_ns, now_ns);
        waits_run(manager, resource_of(news->sought), now_ns);
    }
    if (news->observed != NULL)
        on_observed(manager, news, now_ns);
    if (news->changed != NULL)
        on_changed(manager, news, now_ns);
    if ((news->probes_lost | news->untracked | news->probe_again) != 0)
        update_queues(manager, news, now_ns);
}
