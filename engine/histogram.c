#include "engine/histogram.h"

#include <assert.h>

static const int64_t bounds_ns[HISTOGRAM_BUCKETS] = {
#define X(argument, bound_ns) INT64_C(bound_ns),
    HISTOGRAM_BOUNDS_NS(X, )
#undef X
        INT64_MAX};

/*
 * Between two successive powers of two there is at most one bound. So the largest power of two in a
 * duration tells how many bounds are certainly below the duration, and one comparison decides about
 * the next bound.
 */
#define BELOW(power, bound_ns) +(UINT64_C(bound_ns) < (UINT64_C(1) << (power)))
#define FIRST(power)           (uint8_t)(0 HISTOGRAM_BOUNDS_NS(BELOW, power))
#define FOUR(power)            FIRST(power), FIRST(power + 1), FIRST(power + 2), FIRST(power + 3)
#define SIXTEEN(power)         FOUR(power), FOUR(power + 4), FOUR(power + 8), FOUR(power + 12)

static const uint8_t first_bucket[64] = {SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)};

void histogram_add_many(struct histogram *histogram, int64_t duration_ns, unsigned count)
{
    uint64_t took_ns = duration_ns > 0 ? (uint64_t)duration_ns : 0;
    unsigned power = 63 - (unsigned)__builtin_clzll(took_ns | 1);
    unsigned bucket = first_bucket[power];
    bucket += took_ns > (uint64_t)bounds_ns[bucket];
    histogram->counts[bucket] += count;
    histogram->sum_ns += count * took_ns;
}

void histogram_add(struct histogram *histogram, int64_t duration_ns)
{
    histogram_add_many(histogram, duration_ns, 1);
}

int64_t histogram_bound_ns(unsigned bucket)
{
    assert(bucket < HISTOGRAM_BUCKETS);
    return bounds_ns[bucket];
}
