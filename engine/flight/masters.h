/*
 * What becomes of masters: their connections, whether they report changes, and their votes. What
 * the lock manager has to hear goes to flights->news.
 */
#ifndef ENGINE_FLIGHT_MASTERS_H
#define ENGINE_FLIGHT_MASTERS_H

#include "engine/flight/flights.h"

/* At the start, once the memory of links is there: nothing is known of any of them. */
void masters_init(struct flights *flights, int64_t now_ns);

/* The link was in this state before: tell of it, if it has changed, and have the guard look at the
 * server that is there now. */
void masters_note_link(struct flights *flights, unsigned node, enum link_state before,
                       int64_t now_ns);

/* Tell which nodes have lost their vote, or got it back. */
void masters_note_votes(struct flights *flights, int64_t now_ns);

/* The answer to a setting of the tracker. */
void masters_on_tracking_reply(struct flights *flights, unsigned node,
                               const struct redis_reply *reply);

/* A reply on the connection for reports; false: it was closed over this. */
bool masters_on_report(struct flights *flights, unsigned node, const struct redis_reply *reply,
                       int64_t now_ns);

/* The connection for reports is lost. */
void masters_on_untracked(struct flights *flights, unsigned node);

#endif
