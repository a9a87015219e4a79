/*
 * The clocks. Only callbacks of the loop read them; everything below takes time as an argument.
 */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

/*
 * Nanoseconds since boot, the time suspended included: the keys on the masters go on expiring while
 * this host sleeps, so the daemon has to count that time too.
 */
int64_t clock_now_ns(void);

/*
 * The name of that clock: two daemons with the same one read the same time since boot. A boot has
 * its own, and so has a container that counts from elsewhere (a time namespace).
 */
void clock_name(char *name, size_t size);

/* Without the time suspended: for systemd, which counts by it. */
int64_t clock_monotonic_ns(void);

/* For a timer of libevent: in so long, rounded up; at once where that has passed. */
struct timeval clock_delay(int64_t delay_ns);

/* Nanoseconds since 1970: for log lines, and for ballots (engine/round/fence.h). */
int64_t clock_wall_ns(void);

#endif
