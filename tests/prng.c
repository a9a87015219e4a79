#include "tests/prng.h"

/* splitmix64 */
uint64_t prng_draw(struct prng *prng)
{
    uint64_t z = (prng->state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

unsigned prng_below(struct prng *prng, unsigned count)
{
    return (unsigned)(prng_draw(prng) % count);
}
