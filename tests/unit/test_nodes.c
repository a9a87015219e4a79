/*
 * engine/round/node_set.h: a set of nodes.
 */
#include "engine/round/node_set.h"
#include "protocol/limits.h"
#include "tests/runner.h"

TEST(node_count_matches_the_bits)
{
    for (uint32_t nodes = 0; nodes < UINT32_C(1) << LIMIT_NODES; nodes++) {
        unsigned expected = 0;
        for (uint32_t rest = nodes; rest != 0; rest >>= 1)
            expected += rest & 1;
        ck_assert_uint_eq(nodes_count(nodes), expected);
    }
}

TEST(iteration_visits_each_node_once_in_order)
{
    uint32_t seen = 0;
    unsigned last = 0;
    for (uint32_t rest = 0x80002409; rest != 0; rest = nodes_after_first(rest)) {
        ck_assert(seen == 0 || nodes_first(rest) > last);
        last = nodes_first(rest);
        seen |= UINT32_C(1) << last;
    }
    ck_assert_uint_eq(seen, 0x80002409);
}
