/*
 * A pseudo-random generator for tests: the same seed gives the same values.
 */
#ifndef TESTS_PRNG_H
#define TESTS_PRNG_H

#include <stdint.h>

struct prng {
    uint64_t state; /* initially the seed */
};

uint64_t prng_draw(struct prng *prng);

/* Returns a value in 0 .. count - 1. */
unsigned prng_below(struct prng *prng, unsigned count);

#endif
