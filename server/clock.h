/*
 * The clocks. Only callbacks of the loop read them; everything below takes time as an argument.
 */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stdint.h>

/*
 * Nanoseconds since boot, the time suspended included: the keys on the masters go on expiring while
 * this host sleeps, so the daemon has to count that time too.
 */
int64_t clock_now_ns(void);

/* Nanoseconds since 1970, for log lines only. */
int64_t clock_wall_ns(void);

#endif
