/*
 * What comes from the masters: replies, connections made and lost, the passing of time; and at the
 * end of a pass, what goes there beside the commands of rounds.
 *
 * A vote counts only once the guard's probe, which was written after it on the same connection, has
 * passed: until then it is kept.
 */
#ifndef ENGINE_FLIGHT_REPLIES_H
#define ENGINE_FLIGHT_REPLIES_H

#include "engine/flight/flights.h"

/* A plain yes to votes, which has come `count` times in a row: what masters say most. Returns how
 * many of these have been kept; 0: it is something else. Nothing follows from it. Saves 21 % of the
 * daemon's instructions at 16x16. */
unsigned replies_keep_unfenced_yes(struct flights *flights, unsigned node,
                                   const struct redis_reply *reply, unsigned count, int64_t now_ns);

/* Any reply. False: the connection was closed over it. */
bool replies_on_reply(struct flights *flights, unsigned node, enum channel channel,
                      const struct redis_reply *reply, int64_t now_ns);

void replies_on_connected(struct flights *flights, unsigned node, enum channel channel,
                          int64_t now_ns);
void replies_on_closed(struct flights *flights, unsigned node, enum channel channel,
                       enum reason reason, int64_t now_ns);

/* When replies_on_timer() is wanted next, and that. */
int64_t replies_deadline_ns(const struct flights *flights);
void replies_on_timer(struct flights *flights, int64_t now_ns);

/* The end of a pass: the releases gathered in it, and after the votes that were asked for, one
 * probe of the guard a node. */
bool replies_wants_flush(const struct flights *flights);
void replies_flush(struct flights *flights, int64_t now_ns);

#endif
