/*
 * What the parts of the guard are to each other. For these files alone:
 *
 *     guard.c         what is known of each node, and whether it may vote
 *     guard_marks.c   the records to be written, and an operator's word
 *     guard_beats.c   what daemons leave for each other with their heartbeats
 */
#ifndef PROTOCOL_GUARD_PARTS_H
#define PROTOCOL_GUARD_PARTS_H

#include "protocol/guard.h"

/* Whoever changes a node gets it here: what guard_all_vote() has found is not known any more. */
static inline struct guard_node *guard_change(struct guard *guard, unsigned index)
{
    guard->all_vote_until_ns = 0;
    return &guard->nodes[index];
}

/* Whatever was written to it before does not count any more. */
static inline void guard_begin_epoch(struct guard_node *node)
{
    node->epoch++;
}

/* Its clock has stepped forward: guard.c. */
void guard_on_step(struct guard *guard, struct guard_node *node, int64_t now_ns, int64_t time_us);

/* Is there an operator's word still to be carried out? guard_marks.c. */
bool guard_has_word(const struct guard *guard);

#endif
