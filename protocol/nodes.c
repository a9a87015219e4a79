#include "protocol/nodes.h"

#include <assert.h>

#include "protocol/limits.h"

/* Each set of n + 1 is one of n without the last node, or with it. */
#define ONE(count)  (count), (count) + 1
#define TWO(count)  ONE(count), ONE((count) + 1)
#define FOUR(count) TWO(count), TWO((count) + 1), TWO((count) + 1), TWO((count) + 2)
#define EIGHT(count)                                                                               \
    FOUR(count), FOUR((count) + 1), FOUR((count) + 1), FOUR((count) + 2), FOUR((count) + 1),       \
        FOUR((count) + 2), FOUR((count) + 2), FOUR((count) + 3), FOUR((count) + 1),                \
        FOUR((count) + 2), FOUR((count) + 2), FOUR((count) + 3), FOUR((count) + 2),                \
        FOUR((count) + 3), FOUR((count) + 3), FOUR((count) + 4)

/*
 * Each step of a round asks that several times, and where the compiler may not rely on an
 * instruction for it, as on the oldest x86-64, its own way is a call of a library: so there is a
 * table of the counts of all sets of eight.
 */
static const uint8_t counts[256] = {EIGHT(0)};

unsigned nodes_count(uint32_t nodes)
{
    static_assert(LIMIT_NODES <= 16, "two bytes hold all of them");
    return counts[nodes & 255] + counts[nodes >> 8 & 255];
}
