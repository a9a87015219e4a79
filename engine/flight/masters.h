/*
 * Changes in the state of masters: their connections, their reports of changes, and their votes.
 * News for the lock manager goes to flights->news.
 */
#ifndef ENGINE_FLIGHT_MASTERS_H
#define ENGINE_FLIGHT_MASTERS_H

#include "engine/flight/flights.h"

/* Initialize all masters, after the memory of the links was allocated. */
void masters_init(struct flights *flights, int64_t now_ns);

/* The link was in the state `before`. If its state has changed, report that, and have the guard
 * examine the server that is now connected. */
void masters_note_link(struct flights *flights, unsigned node, enum link_state before,
                       int64_t now_ns);

/* Report which nodes have lost their vote or got it back. */
void masters_note_votes(struct flights *flights, int64_t now_ns);

/* The answer to a setting of the tracker. */
void masters_on_tracking_reply(struct flights *flights, unsigned node,
                               const struct redis_reply *reply);

/* A reply on the tracking connection. Returns false if the reply made the daemon close it. */
bool masters_on_report(struct flights *flights, unsigned node, const struct redis_reply *reply,
                       int64_t now_ns);

/* The tracking connection is lost. */
void masters_on_untracked(struct flights *flights, unsigned node);

#endif
