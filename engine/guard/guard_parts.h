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

/* Nothing is known of its clock from before now, when it says time_us. */
void guard_unsettle(struct guard *guard, struct guard_node *node, int64_t now_ns, int64_t time_us);

/* Its clock has stepped forward. */
void guard_on_step(struct guard *guard, struct guard_node *node, int64_t now_ns, int64_t time_us);

/* ... or back, by so much: the others have to be told. Else who starts later might go on from
 * bounds that fit again, once the clock is where it was. */
void guard_on_step_back(struct guard *guard, unsigned index, int64_t back_ns, int64_t now_ns);

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
