/*
 * What the parts of the guard are to each other. For these files alone:
 *
 *     guard.c         what is known of each node, and whether it may vote
 *     guard_marks.c   the records to be written, and an operator's word
 *     guard_beats.c   what daemons leave for each other with their heartbeats
 */
#ifndef ENGINE_GUARD_GUARD_PARTS_H
#define ENGINE_GUARD_GUARD_PARTS_H

#include "engine/guard/guard.h"

/* Whatever was written to it before does not count any more. */
static inline void guard_begin_epoch(struct guard_node *node)
{
    node->epoch++;
}

/* --- guard.c --- */

/* Whoever changes a node gets it here: what guard_all_vote() has found is not known any more. */
struct guard_node *guard_change(struct guard *guard, unsigned index);

/* What has come of a look at its clock, or of what others left of theirs. */
void guard_on_clock(struct guard *guard, unsigned index, const struct clock_result *result,
                    int64_t now_ns);

/* --- guard_beats.c --- */

/* Has this daemon bounds of the node's clock that others may go by? */
bool guard_has_bounds(const struct guard *guard, const struct guard_node *node, int64_t now_ns);

/* --- guard_marks.c --- */

/* How long the quarantine would be that is written to the node's record now, for this reason. */
int64_t guard_quarantine_ms(const struct guard *guard, unsigned index, enum reason why,
                            int64_t now_ns);

/* Is there an operator's word still to be carried out? */
bool guard_has_word(const struct guard *guard);

#endif
