/*
 * Choices of a random test that a seed repeats.
 */
#ifndef TESTS_PRNG_H
#define TESTS_PRNG_H

#include <stdint.h>

struct prng {
    uint64_t state; /* the seed, to begin with */
};

uint64_t prng_draw(struct prng *prng);

/* One of 0 .. count - 1. */
unsigned prng_below(struct prng *prng, unsigned count);

#endif
