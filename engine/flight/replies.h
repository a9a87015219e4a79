/*
 * Everything that comes from the masters: replies, and connections made and lost. Also the timers
 * of the connections, and what is written to the masters at the end of a pass.
 *
 * A vote counts only once a probe of the guard has passed that was written after the vote on the
 * same connection. Until then the daemon keeps the vote.
 */
#ifndef ENGINE_FLIGHT_REPLIES_H
#define ENGINE_FLIGHT_REPLIES_H

#include "engine/flight/flights.h"

/*
 * A reply that has come `count` times in a row. If it is the YES answer to unfenced votes, which is
 * the most frequent input, keep the votes and return how many were kept. 0: it is something else;
 * use replies_on_reply(). No round is stepped. This fast path saves 19 % of the daemon's
 * instructions at 16x16 (16 connections with 16 requests in flight on each).
 */
unsigned replies_keep_unfenced_yes(struct flights *flights, unsigned node,
                                   const struct redis_reply *reply, unsigned count, int64_t now_ns);

/* Handle any reply. Returns false if the reply made the daemon close the connection. */
bool replies_on_reply(struct flights *flights, unsigned node, enum channel channel,
                      const struct redis_reply *reply, int64_t now_ns);

void replies_on_connected(struct flights *flights, unsigned node, enum channel channel,
                          int64_t now_ns);
void replies_on_closed(struct flights *flights, unsigned node, enum channel channel,
                       enum reason reason, int64_t now_ns);

/* Call replies_on_timer() at replies_deadline_ns(), when all replies that had arrived by heard_ns
 * have been handled. */
int64_t replies_deadline_ns(const struct flights *flights);
void replies_on_timer(struct flights *flights, int64_t heard_ns, int64_t now_ns);

/* At the end of a pass: write the batched releases, one probe of the guard to each node that was
 * asked for votes, and whatever else the guard has to send. */
bool replies_wants_flush(const struct flights *flights);
void replies_flush(struct flights *flights, int64_t now_ns);

#endif
