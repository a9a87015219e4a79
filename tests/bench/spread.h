/* A histogram of durations. Percentiles are accurate to within 2 %. */
#ifndef TESTS_BENCH_SPREAD_H
#define TESTS_BENCH_SPREAD_H

#include <stdint.h>

/* Each power of two is divided into this many buckets. */
enum { SPREAD_PARTS = 64, SPREAD_DOUBLINGS = 40, SPREAD_SIZE = SPREAD_DOUBLINGS * SPREAD_PARTS };

struct spread {
    uint64_t count;
    int64_t sum_ns;
    int64_t longest_ns;
    uint64_t counts[SPREAD_SIZE];
};

void spread_add(struct spread *spread, int64_t ns);

/* The percentile at `part`: 0.5 for the median, 0.99 for p99. 0 if the histogram is empty. */
int64_t spread_at(const struct spread *spread, double part);

/* The mean duration; 0 if the histogram is empty. */
int64_t spread_mean(const struct spread *spread);

#endif
