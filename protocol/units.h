/* Units of time. Every duration inside redlockd is an int64_t in nanoseconds. */
#ifndef PROTOCOL_UNITS_H
#define PROTOCOL_UNITS_H

#include <stdint.h>

#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL
#define MS_PER_S  1000

static inline int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
