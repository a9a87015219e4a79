/*
 * Input from the masters: replies, connections made and lost, and the passing of time. At the end
 * of a pass, this module writes what goes to the masters apart from the commands of rounds.
 *
 * A vote counts only once the guard's probe, written after it on the same connection, has passed.
 * Until then the vote is kept.
 */
#ifndef ENGINE_FLIGHT_REPLIES_H
#define ENGINE_FLIGHT_REPLIES_H

#include "engine/flight/flights.h"

/*
 * A YES answer to unfenced votes, `count` times in a row: the most frequent input. Returns how many
 * of these were kept; 0: the answer is something else. No round is stepped. Saves 21 % of the
 * daemon's instructions at 16x16.
 */
unsigned replies_keep_unfenced_yes(struct flights *flights, unsigned node,
                                   const struct redis_reply *reply, unsigned count, int64_t now_ns);

/* Any reply. Returns false if the reply made the daemon close the connection. */
bool replies_on_reply(struct flights *flights, unsigned node, enum channel channel,
                      const struct redis_reply *reply, int64_t now_ns);

void replies_on_connected(struct flights *flights, unsigned node, enum channel channel,
                          int64_t now_ns);
void replies_on_closed(struct flights *flights, unsigned node, enum channel channel,
                       enum reason reason, int64_t now_ns);

/* Call replies_on_timer() at replies_deadline_ns(). */
int64_t replies_deadline_ns(const struct flights *flights);
void replies_on_timer(struct flights *flights, int64_t now_ns);

/* At the end of a pass: write the batched releases, and one probe of the guard to each node that
 * was asked for votes. */
bool replies_wants_flush(const struct flights *flights);
void replies_flush(struct flights *flights, int64_t now_ns);

#endif
