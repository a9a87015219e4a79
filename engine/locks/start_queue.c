#include "engine/locks/start_queue.h"

#include <assert.h>

#include "engine/locks/manager.h"

void start_queue_init(struct start_queue *queue)
{
    TAILQ_INIT(&queue->clients);
    queue->length = 0;
}

void start_queue_join(struct start_queue *queue, struct pending_request *pending, int64_t now_ns)
{
    struct engine_client *client = pending->client;
    assert(!pending->awaits_start);
    pending->awaits_start = true;
    pending->joined_starts_ns = now_ns;
    if (TAILQ_EMPTY(&client->to_start))
        TAILQ_INSERT_TAIL(&queue->clients, client, of_starts);
    TAILQ_INSERT_TAIL(&client->to_start, pending, of_starts);
    queue->length++;
}

void start_queue_leave(struct start_queue *queue, struct pending_request *pending)
{
    struct engine_client *client = pending->client;
    assert(pending->awaits_start);
    assert(queue->length > 0);
    pending->awaits_start = false;
    TAILQ_REMOVE(&client->to_start, pending, of_starts);
    if (TAILQ_EMPTY(&client->to_start))
        TAILQ_REMOVE(&queue->clients, client, of_starts);
    queue->length--;
}

struct pending_request *start_queue_take(struct start_queue *queue)
{
    struct engine_client *client = TAILQ_FIRST(&queue->clients);
    if (client == NULL)
        return NULL;
    struct pending_request *pending = TAILQ_FIRST(&client->to_start);
    /* This was the client's turn. */
    TAILQ_REMOVE(&queue->clients, client, of_starts);
    TAILQ_INSERT_TAIL(&queue->clients, client, of_starts);
    start_queue_leave(queue, pending);
    return pending;
}
