#include "protocol/nodes.h"

/* Each set of n + 1 is one of n without the last node, or with it. */
#define ONE(count)  (count), (count) + 1
#define TWO(count)  ONE(count), ONE((count) + 1)
#define FOUR(count) TWO(count), TWO((count) + 1), TWO((count) + 1), TWO((count) + 2)
#define EIGHT(count)                                                                               \
    FOUR(count), FOUR((count) + 1), FOUR((count) + 1), FOUR((count) + 2), FOUR((count) + 1),       \
        FOUR((count) + 2), FOUR((count) + 2), FOUR((count) + 3), FOUR((count) + 1),                \
        FOUR((count) + 2), FOUR((count) + 2), FOUR((count) + 3), FOUR((count) + 2),                \
        FOUR((count) + 3), FOUR((count) + 3), FOUR((count) + 4)

const uint8_t nodes_counts[256] = {EIGHT(0)};
