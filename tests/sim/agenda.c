#include "tests/sim/agenda.h"

#include <assert.h>
#include <stdbool.h>

static bool is_before(const struct event *left, const struct event *right)
{
    return left->at_ns != right->at_ns ? left->at_ns < right->at_ns : left->serial < right->serial;
}

void agenda_clear(struct agenda *agenda)
{
    agenda->count = 0;
    agenda->serial = 0;
}

void agenda_add(struct agenda *agenda, int64_t at_ns, enum event_kind kind, uint32_t subject,
                uint32_t generation)
{
    struct event event = {at_ns, agenda->serial++, kind, subject, generation};
    unsigned at = agenda->count++;
    assert(at < AGENDA_EVENTS);
    while (at > 0 && is_before(&event, &agenda->events[(at - 1) / 2])) {
        agenda->events[at] = agenda->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    agenda->events[at] = event;
}

int64_t agenda_next_ns(const struct agenda *agenda)
{
    return agenda->count > 0 ? agenda->events[0].at_ns : INT64_MAX;
}

struct event agenda_take(struct agenda *agenda)
{
    assert(agenda->count > 0);
    struct event first = agenda->events[0];
    struct event last = agenda->events[--agenda->count];
    unsigned at = 0;
    for (;;) {
        unsigned child = 2 * at + 1;
        if (child >= agenda->count)
            break;
        if (child + 1 < agenda->count &&
            is_before(&agenda->events[child + 1], &agenda->events[child]))
            child++;
        if (!is_before(&agenda->events[child], &last))
            break;
        agenda->events[at] = agenda->events[child];
        at = child;
    }
    agenda->events[at] = last;
    return first;
}
