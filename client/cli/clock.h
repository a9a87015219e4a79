/*
 * CLOCK_BOOTTIME, by which the deadlines of locks are told: it goes on while the machine sleeps.
 */
#ifndef CLIENT_CLI_CLOCK_H
#define CLIENT_CLI_CLOCK_H

#include <stdint.h>

int64_t clock_boottime_ns(void);

/* Have a timerfd of that clock become readable at this instant. */
void clock_set_timer(int timer, int64_t at_ns);

#endif
