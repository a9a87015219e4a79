#include "engine/alarm.h"

#include <stddef.h>

/* Of two at the same time, the one set first: not the one at the lower address, which would differ
 * from run to run. */
static bool is_before(const struct alarm *one, const struct alarm *other)
{
    if (one->at_ns != other->at_ns)
        return one->at_ns < other->at_ns;
    return one->serial < other->serial;
}

/* Have the later of the two hang from the other one, which is returned. */
static struct alarm *join(struct alarm *one, struct alarm *other)
{
    struct alarm *first = is_before(one, other) ? one : other;
    struct alarm *later = first == one ? other : one;
    later->next = first->below;
    if (later->next != NULL)
        later->next->place = &later->next;
    later->place = &first->below;
    first->below = later;
    return first;
}

/* Join all that hang from one alarm; NULL if none does. First each with the one next to it, then
 * these pairs with each other, the last ones first: one behind the other they would often all hang
 * from the same one again, and be gone through each time. */
static struct alarm *join_all(struct alarm *rest)
{
    struct alarm *pairs = NULL;
    struct alarm *all = NULL;
    while (rest != NULL) {
        struct alarm *one = rest;
        struct alarm *other = one->next;
        rest = other != NULL ? other->next : NULL;
        if (other != NULL)
            one = join(one, other);
        one->next = pairs;
        pairs = one;
    }
    while (pairs != NULL) {
        struct alarm *pair = pairs;
        pairs = pair->next;
        all = all != NULL ? join(all, pair) : pair;
    }
    return all;
}

void alarms_init(struct alarms *alarms)
{
    *alarms = (struct alarms){.first_ns = ALARM_NEVER};
}

/* It comes to the others, with all that hang from it. */
static void add(struct alarms *alarms, struct alarm *alarm)
{
    struct alarm *first = alarms->first != NULL ? join(alarms->first, alarm) : alarm;
    first->next = NULL;
    first->place = &alarms->first;
    alarms->first = first;
    alarms->first_ns = first->at_ns;
}

static void unset(struct alarms *alarms, struct alarm *alarm)
{
    struct alarm *below = join_all(alarm->below);
    *alarm->place = alarm->next;
    if (alarm->next != NULL)
        alarm->next->place = alarm->place;
    alarm->set = false;
    if (below != NULL)
        add(alarms, below);
    else if (alarms->first == NULL)
        alarms->first_ns = ALARM_NEVER;
}

void alarms_set(struct alarms *alarms, struct alarm *alarm, int64_t at_ns)
{
    if (alarm->set && alarm->at_ns == at_ns)
        return;
    if (alarm->set)
        unset(alarms, alarm);
    if (at_ns == ALARM_NEVER)
        return;
    alarm->at_ns = at_ns;
    alarm->serial = ++alarms->serial;
    alarm->set = true;
    alarm->below = NULL;
    add(alarms, alarm);
}

struct alarm *alarms_take(struct alarms *alarms, int64_t now_ns)
{
    struct alarm *first = alarms->first;
    if (alarms->first_ns > now_ns)
        return NULL;
    if (first != NULL)
        unset(alarms, first);
    return first;
}
