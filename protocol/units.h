/* Units of time. Every duration inside redlockd is an int64_t in nanoseconds. */
#ifndef PROTOCOL_UNITS_H
#define PROTOCOL_UNITS_H

#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL
#define MS_PER_S  1000

#endif
