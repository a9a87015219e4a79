#include "protocol/alarm.h"

#include <stddef.h>

/* Of two at the same time, the one set first: not the one at the lower address, which would differ
 * from run to run. */
static int compare(const struct alarm *one, const struct alarm *other)
{
    if (one->at_ns != other->at_ns)
        return one->at_ns < other->at_ns ? -1 : 1;
    return (one->serial > other->serial) - (one->serial < other->serial);
}

RB_PROTOTYPE(alarm_tree, alarm, entry, compare)
RB_GENERATE(alarm_tree, alarm, entry, compare)

void alarms_init(struct alarms *alarms)
{
    RB_INIT(&alarms->tree);
    alarms->serial = 0;
    alarms->first_ns = ALARM_NEVER;
}

static void unset(struct alarms *alarms, struct alarm *alarm)
{
    RB_REMOVE(alarm_tree, &alarms->tree, alarm);
    alarm->set = false;
    if (alarm->at_ns != alarms->first_ns)
        return;
    const struct alarm *first = RB_MIN(alarm_tree, &alarms->tree);
    alarms->first_ns = first != NULL ? first->at_ns : ALARM_NEVER;
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
    RB_INSERT(alarm_tree, &alarms->tree, alarm);
    if (at_ns < alarms->first_ns)
        alarms->first_ns = at_ns;
}

struct alarm *alarms_take(struct alarms *alarms, int64_t now_ns)
{
    if (alarms->first_ns > now_ns)
        return NULL;
    struct alarm *first = RB_MIN(alarm_tree, &alarms->tree);
    if (first != NULL)
        unset(alarms, first);
    return first;
}
