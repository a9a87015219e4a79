#include "tests/dice.h"

/* splitmix64 */
uint64_t dice_draw(struct dice *dice)
{
    uint64_t z = (dice->state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

unsigned dice_below(struct dice *dice, unsigned count)
{
    return (unsigned)(dice_draw(dice) % count);
}
