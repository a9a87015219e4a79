/*
 * Durations, counted in fixed buckets as Prometheus needs them. Pure, and cheap enough for every
 * request: a dozen instructions, no allocation, no loop.
 *
 * A bucket counts the durations that are greater than the bound of the previous bucket and not
 * greater than its own bound. All histograms have the same bounds: 20 us, 50 us, 100 us and so on
 * in steps of 1-2-5 up to 10 s, then five more up to an hour. The last bucket has no bound. Each
 * bound is at least twice the one before, which makes the lookup cheap.
 */
#ifndef ENGINE_HISTOGRAM_H
#define ENGINE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_1_2_5(X, argument, unit_ns)                                                      \
    X(argument, unit_ns)                                                                           \
    X(argument, 2 * unit_ns)                                                                       \
    X(argument, 5 * unit_ns)
#define HISTOGRAM_BOUNDS_NS(X, argument)                                                           \
    X(argument, 20000)                                                                             \
    X(argument, 50000)                                                                             \
    HISTOGRAM_1_2_5(X, argument, 100000)                                                           \
    HISTOGRAM_1_2_5(X, argument, 1000000)                                                          \
    HISTOGRAM_1_2_5(X, argument, 10000000)                                                         \
    HISTOGRAM_1_2_5(X, argument, 100000000)                                                        \
    HISTOGRAM_1_2_5(X, argument, 1000000000)                                                       \
    X(argument, 10000000000)                                                                       \
    X(argument, 30000000000)                                                                       \
    X(argument, 60000000000)                                                                       \
    X(argument, 300000000000)                                                                      \
    X(argument, 1800000000000)                                                                     \
    X(argument, 3600000000000)

enum {
#define X(argument, bound_ns) +1
    HISTOGRAM_BUCKETS = 1 HISTOGRAM_BOUNDS_NS(X, ) /* the last bucket has no upper bound */
#undef X
};

/* All zero at first. */
struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t sum_ns;
};

/* A duration below 0 counts as 0. */
void histogram_add(struct histogram *histogram, int64_t duration_ns);
/* Add `count` equal durations. */
void histogram_add_many(struct histogram *histogram, int64_t duration_ns, unsigned count);

/* The upper bound of a bucket, INT64_MAX for the last. */
int64_t histogram_bound_ns(unsigned bucket);

#endif
