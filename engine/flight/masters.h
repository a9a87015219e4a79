/*
 * Changes in the state of masters: their connections, their votes, and their reports of changed
 * keys. The lock manager learns of them through flights->news.
 */
#ifndef ENGINE_FLIGHT_MASTERS_H
#define ENGINE_FLIGHT_MASTERS_H

#include "engine/flight/flights.h"

/* Initialize all masters. The memory for outstanding commands and pending releases has to be
 * allocated before. */
void masters_init(struct flights *flights, int64_t now_ns);

/* Call after each event of a link; `before` is the state of the link before the event. If the state
 * has changed, this logs it, and if the master is connected now, the guard examines the server that
 * it is connected to. */
void masters_note_link(struct flights *flights, unsigned node, enum link_state before,
                       int64_t now_ns);

/* Find out which nodes have lost their vote or got it back, and report them to the log and to the
 * lock manager. Also report to the log each node whose clock has stepped back. A node that has no
 * vote because of REASON_BACKLOG is not reported. */
void masters_note_votes(struct flights *flights, int64_t now_ns);

/* The answer to a command of the tracker on the first connection (OUTSTANDING_TRACKING). */
void masters_on_tracking_reply(struct flights *flights, unsigned node,
                               const struct redis_reply *reply);

/* Handle a reply on the tracking connection. Returns false if the reply made the daemon close that
 * connection. */
bool masters_on_report(struct flights *flights, unsigned node, const struct redis_reply *reply,
                       int64_t now_ns);

/* The tracking connection is lost, or the master no longer reports changes. */
void masters_on_untracked(struct flights *flights, unsigned node);

#endif
