/*
 * The clocks. Only code in server/ reads them, mostly in callbacks of the event loop. The engine
 * takes the time as an argument, and asks for the wall clock through an I/O callback.
 */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

/*
 * Nanoseconds since boot, including the time suspended: keys on the masters keep expiring while
 * this host sleeps, so the daemon has to count that time as well.
 */
int64_t clock_now_ns(void);

/*
 * The id of the clock that clock_now_ns() reads: two daemons with the same id read the same time
 * since boot. Each boot has its own id, and so does a container in a time namespace with its own
 * offset.
 */
void clock_read_id(char *id, size_t size);

/* Nanoseconds since boot without the time suspended. systemd uses this clock. */
int64_t clock_monotonic_ns(void);

/* Convert a delay to a libevent timeout, rounded up. A negative delay becomes 0. */
struct timeval clock_delay(int64_t delay_ns);

/* Nanoseconds since 1970, for log lines and for ballots (engine/round/fence.h). */
int64_t clock_wall_ns(void);

#endif
