#include "engine/locks/start_queue.h"

#include <assert.h>

#include "engine/locks/manager.h"
#include "protocol/units.h"

/* The duration of one measurement of the pace. If it took much longer, the daemon was stopped
 * meanwhile, and the measurement does not count. */
#define MEASUREMENT_NS (100 * NS_PER_MS)
#define STOPPED_NS     NS_PER_S

void start_queue_init(struct start_queue *queue)
{
    *queue = (struct start_queue){0};
    TAILQ_INIT(&queue->clients);
}

static void begin_measurement(struct start_queue *queue, int64_t now_ns)
{
    queue->measured_ns = now_ns;
    queue->left = 0;
}

/* The latest measurement counts as much as all earlier ones. */
static void measure(struct start_queue *queue, int64_t now_ns)
{
    int64_t elapsed_ns = now_ns - queue->measured_ns;
    if (elapsed_ns < MEASUREMENT_NS)
        return;
    int64_t interval_ns = elapsed_ns / (queue->left > 0 ? queue->left : 1);
    if (elapsed_ns < STOPPED_NS)
        queue->interval_ns =
            queue->interval_ns > 0 ? (queue->interval_ns + interval_ns) / 2 : interval_ns;
    begin_measurement(queue, now_ns);
}

void start_queue_join(struct start_queue *queue, struct pending_request *pending, int64_t now_ns)
{
    struct engine_client *client = pending->client;
    assert(!pending->awaits_start);
    pending->awaits_start = true;
    pending->joined_starts_ns = now_ns;
    if (queue->length == 0) {
        queue->interval_ns = 0;
        begin_measurement(queue, now_ns);
    }
    if (client->to_start_count++ == 0) {
        TAILQ_INSERT_TAIL(&queue->clients, client, of_starts);
        queue->client_count++;
    }
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
    if (--client->to_start_count == 0) {
        TAILQ_REMOVE(&queue->clients, client, of_starts);
        queue->client_count--;
    }
    queue->length--;
    queue->left++;
}

struct pending_request *start_queue_take(struct start_queue *queue, int64_t now_ns)
{
    struct engine_client *client = TAILQ_FIRST(&queue->clients);
    if (client == NULL)
        return NULL;
    struct pending_request *pending = TAILQ_FIRST(&client->to_start);
    /* This was the client's turn. */
    TAILQ_REMOVE(&queue->clients, client, of_starts);
    TAILQ_INSERT_TAIL(&queue->clients, client, of_starts);
    start_queue_leave(queue, pending);
    measure(queue, now_ns);
    return pending;
}

int64_t start_queue_delay_ns(struct start_queue *queue, const struct engine_client *client,
                             int64_t now_ns)
{
    if (queue->length == 0)
        return 0;
    measure(queue, now_ns);
    /* Before the request starts, each client has at most this many turns. */
    size_t most = (size_t)queue->client_count * (client->to_start_count + 1);
    size_t before = most < queue->length ? most : queue->length;
    return (int64_t)before * queue->interval_ns;
}
