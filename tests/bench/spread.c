#include "tests/bench/spread.h"

static unsigned index_of(uint64_t ns)
{
    unsigned doubling = 0;
    while (ns >= 2 * SPREAD_PARTS) {
        ns >>= 1;
        doubling++;
    }
    unsigned index = doubling * SPREAD_PARTS + (unsigned)ns;
    return index < SPREAD_SIZE ? index : SPREAD_SIZE - 1;
}

/* The longest duration that belongs to this bucket. */
static int64_t upper(unsigned index)
{
    if (index < 2 * SPREAD_PARTS)
        return index;
    unsigned doubling = index / SPREAD_PARTS - 1;
    uint64_t mantissa = index - doubling * SPREAD_PARTS;
    return (int64_t)(((mantissa + 1) << doubling) - 1);
}

void spread_add(struct spread *spread, int64_t ns)
{
    spread->counts[index_of(ns > 0 ? (uint64_t)ns : 0)]++;
    spread->count++;
    spread->sum_ns += ns;
    if (ns > spread->longest_ns)
        spread->longest_ns = ns;
}

int64_t spread_mean(const struct spread *spread)
{
    return spread->count > 0 ? spread->sum_ns / (int64_t)spread->count : 0;
}

int64_t spread_at(const struct spread *spread, double part)
{
    uint64_t wanted = (uint64_t)((double)spread->count * part);
    uint64_t seen = 0;
    for (unsigned i = 0; i < SPREAD_SIZE; i++) {
        seen += spread->counts[i];
        if (seen > wanted || (seen == spread->count && seen > 0))
            return upper(i);
    }
    return 0;
}
