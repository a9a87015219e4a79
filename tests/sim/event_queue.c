#include "tests/sim/event_queue.h"

#include <assert.h>
#include <stdbool.h>

static bool is_before(const struct event *left, const struct event *right)
{
    return left->at_ns != right->at_ns ? left->at_ns < right->at_ns : left->serial < right->serial;
}

void event_queue_clear(struct event_queue *event_queue)
{
    event_queue->count = 0;
    event_queue->serial = 0;
}

void event_queue_add(struct event_queue *event_queue, int64_t at_ns, enum event_kind kind,
                     uint32_t subject, uint32_t generation)
{
    struct event event = {at_ns, event_queue->serial++, kind, subject, generation};
    unsigned at = event_queue->count++;
    assert(at < EVENT_QUEUE_EVENTS);
    while (at > 0 && is_before(&event, &event_queue->events[(at - 1) / 2])) {
        event_queue->events[at] = event_queue->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    event_queue->events[at] = event;
}

int64_t event_queue_next_ns(const struct event_queue *event_queue)
{
    return event_queue->count > 0 ? event_queue->events[0].at_ns : INT64_MAX;
}

struct event event_queue_take(struct event_queue *event_queue)
{
    assert(event_queue->count > 0);
    struct event first = event_queue->events[0];
    struct event last = event_queue->events[--event_queue->count];
    unsigned at = 0;
    for (;;) {
        unsigned child = 2 * at + 1;
        if (child >= event_queue->count)
            break;
        if (child + 1 < event_queue->count &&
            is_before(&event_queue->events[child + 1], &event_queue->events[child]))
            child++;
        if (!is_before(&event_queue->events[child], &last))
            break;
        event_queue->events[at] = event_queue->events[child];
        at = child;
    }
    event_queue->events[at] = last;
    return first;
}
