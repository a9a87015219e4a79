#include "engine/timer.h"

#include <stddef.h>

/* Of two timers with the same time, the one that was set first comes first. Comparing addresses
 * would differ from run to run. */
static bool is_before(const struct timer *one, const struct timer *other)
{
    if (one->at_ns != other->at_ns)
        return one->at_ns < other->at_ns;
    return one->serial < other->serial;
}

/* Make the later timer a child of the other, which is returned. */
static struct timer *join(struct timer *one, struct timer *other)
{
    struct timer *first = is_before(one, other) ? one : other;
    struct timer *later = first == one ? other : one;
    later->next = first->below;
    if (later->next != NULL)
        later->next->place = &later->next;
    later->place = &first->below;
    first->below = later;
    return first;
}

/*
 * Join the children of a timer; NULL if there are none. First each joins its neighbour, then these
 * pairs join, the last pair first. Joined one after the other, the timers would often all become
 * children of the same one again, and be compared each time.
 */
static struct timer *join_all(struct timer *rest)
{
    struct timer *pairs = NULL;
    struct timer *all = NULL;
    while (rest != NULL) {
        struct timer *one = rest;
        struct timer *other = one->next;
        rest = other != NULL ? other->next : NULL;
        if (other != NULL)
            one = join(one, other);
        one->next = pairs;
        pairs = one;
    }
    while (pairs != NULL) {
        struct timer *pair = pairs;
        pairs = pair->next;
        all = all != NULL ? join(all, pair) : pair;
    }
    return all;
}

void timers_init(struct timers *timers)
{
    *timers = (struct timers){.first_ns = TIMER_NEVER};
}

/* Add a timer with all its children. */
static void add(struct timers *timers, struct timer *timer)
{
    struct timer *first = timers->first != NULL ? join(timers->first, timer) : timer;
    first->next = NULL;
    first->place = &timers->first;
    timers->first = first;
    timers->first_ns = first->at_ns;
}

static void unset(struct timers *timers, struct timer *timer)
{
    struct timer *below = join_all(timer->below);
    *timer->place = timer->next;
    if (timer->next != NULL)
        timer->next->place = timer->place;
    timer->set = false;
    if (below != NULL)
        add(timers, below);
    else if (timers->first == NULL)
        timers->first_ns = TIMER_NEVER;
}

void timers_set(struct timers *timers, struct timer *timer, int64_t at_ns)
{
    if (timer->set && timer->at_ns == at_ns)
        return;
    if (timer->set)
        unset(timers, timer);
    if (at_ns == TIMER_NEVER)
        return;
    timer->at_ns = at_ns;
    timer->serial = ++timers->serial;
    timer->set = true;
    timer->below = NULL;
    add(timers, timer);
}

struct timer *timers_take(struct timers *timers, int64_t now_ns)
{
    struct timer *first = timers->first;
    if (timers->first_ns > now_ns)
        return NULL;
    if (first != NULL)
        unset(timers, first);
    return first;
}
