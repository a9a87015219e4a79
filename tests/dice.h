/*
 * Choices of a random test that a seed repeats.
 */
#ifndef TESTS_DICE_H
#define TESTS_DICE_H

#include <stdint.h>

struct dice {
    uint64_t state; /* the seed, to begin with */
};

uint64_t dice_draw(struct dice *dice);

/* One of 0 .. count - 1. */
unsigned dice_below(struct dice *dice, unsigned count);

#endif
