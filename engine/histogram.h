/*
 * How long things took: counts in fixed buckets, as Prometheus wants them. Pure, and cheap enough
 * for what happens with every request: a dozen instructions, no allocation, no loop.
 *
 * A bucket holds what took at most its bound and more than the one before. The bounds are the same
 * for all histograms, 1-2-5 from 20 us to 10 s and then by hand up to an hour; the last bucket has
 * none. No two of them are nearer than a factor of two, which is what makes it cheap.
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
    HISTOGRAM_BUCKETS = 1 HISTOGRAM_BOUNDS_NS(X, ) /* the last is for all that took longer */
#undef X
};

/* All zero to begin with. */
struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t sum_ns;
};

/* A duration below 0 counts as 0. */
void histogram_add(struct histogram *histogram, int64_t duration_ns);
/* The same of so many that took as long. */
void histogram_add_many(struct histogram *histogram, int64_t duration_ns, unsigned count);

/* The bound of a bucket, INT64_MAX for the last. */
int64_t histogram_bound_ns(unsigned bucket);

#endif
