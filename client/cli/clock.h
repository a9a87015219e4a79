/*
 * CLOCK_BOOTTIME, the clock of lock deadlines: it keeps running while the machine sleeps.
 */
#ifndef CLIENT_CLI_CLOCK_H
#define CLIENT_CLI_CLOCK_H

#include <stdint.h>

int64_t clock_boottime_ns(void);

/* Sets a timerfd of that clock to expire at this time. */
void clock_set_timer(int timer, int64_t at_ns);

#endif
