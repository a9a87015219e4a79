#include "engine/timer.h"

#include <stddef.h>

/* Of two timers with the same time, the one that was set first comes first. An order by address
 * would differ from run to run. */
static bool is_before(const struct timer *one, const struct timer *other)
{
    if (one->at_ns != other->at_ns)
        return one->at_ns < other->at_ns;
    return one->serial < other->serial;
}

/* Make the later timer a child of the earlier one, and return the earlier one. */
static struct timer *meld(struct timer *one, struct timer *other)
{
    struct timer *first = is_before(one, other) ? one : other;
    struct timer *later = first == one ? other : one;
    later->sibling = first->child;
    if (later->sibling != NULL)
        later->sibling->link = &later->sibling;
    later->link = &first->child;
    first->child = later;
    return first;
}

/*
 * Meld a list of siblings into one heap; NULL if the list is empty. First each timer is melded with
 * its neighbour; then the resulting pairs are melded, the last pair first. If the timers were
 * melded one after the other instead, they would often all become children of the same timer again,
 * and every later removal would have to compare all of them again.
 */
static struct timer *meld_all(struct timer *rest)
{
    struct timer *pairs = NULL;
    struct timer *all = NULL;
    while (rest != NULL) {
        struct timer *one = rest;
        struct timer *other = one->sibling;
        rest = other != NULL ? other->sibling : NULL;
        if (other != NULL)
            one = meld(one, other);
        one->sibling = pairs;
        pairs = one;
    }
    while (pairs != NULL) {
        struct timer *pair = pairs;
        pairs = pair->sibling;
        all = all != NULL ? meld(all, pair) : pair;
    }
    return all;
}

void timers_init(struct timers *timers)
{
    *timers = (struct timers){.first_ns = TIMER_NEVER};
}

/* Add a timer with all its children. */
static void insert(struct timers *timers, struct timer *timer)
{
    struct timer *first = timers->first != NULL ? meld(timers->first, timer) : timer;
    first->sibling = NULL;
    first->link = &timers->first;
    timers->first = first;
    timers->first_ns = first->at_ns;
}

static void remove_timer(struct timers *timers, struct timer *timer)
{
    struct timer *children = meld_all(timer->child);
    *timer->link = timer->sibling;
    if (timer->sibling != NULL)
        timer->sibling->link = timer->link;
    timer->set = false;
    if (children != NULL)
        insert(timers, children);
    else if (timers->first == NULL)
        timers->first_ns = TIMER_NEVER;
}

void timers_set(struct timers *timers, struct timer *timer, int64_t at_ns)
{
    if (timer->set && timer->at_ns == at_ns)
        return;
    if (timer->set)
        remove_timer(timers, timer);
    if (at_ns == TIMER_NEVER)
        return;
    timer->at_ns = at_ns;
    timer->serial = ++timers->serial;
    timer->set = true;
    timer->child = NULL;
    insert(timers, timer);
}

struct timer *timers_take(struct timers *timers, int64_t now_ns)
{
    struct timer *first = timers->first;
    if (timers->first_ns > now_ns)
        return NULL;
    if (first != NULL)
        remove_timer(timers, first);
    return first;
}
