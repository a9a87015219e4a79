#include "client/cli/clock.h"

#include "protocol/units.h"

#include <sys/timerfd.h>
#include <time.h>

int64_t clock_boottime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void clock_set_timer(int timer, int64_t at_ns)
{
    /* Zero would disarm the timer. */
    int64_t ns = at_ns > 0 ? at_ns : 1;
    const struct itimerspec spec = {
        .it_value = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S},
    };
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
}
