/*
 * How long a lock has to be free for a waiter of this daemon to get it: other daemons hear of that
 * (docs/algorithm.md, "A daemon that is far from the masters"). Pure.
 */
#ifndef ENGINE_FLIGHT_NEED_H
#define ENGINE_FLIGHT_NEED_H

#include <stdint.h>

/* With this round trip to the masters: a report and a look, a look's answer and a SET, and one
 * round trip more for jitter. 0: the usual pauses are long enough. */
int64_t need_ns(int64_t backoff_min_ns, int64_t round_trip_ns);

#endif
