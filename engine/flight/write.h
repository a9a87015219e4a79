/*
 * What goes to the masters: the commands of a round, formatted once for all nodes that get the
 * same; and releases.
 *
 * What UNLOCKs of one pass have to delete goes to a node as one command, releases.lua. That saves
 * the masters 25 % of their time at 64x1 and 43 % at 16x16. It is written at the end of the pass;
 * or earlier, before anything else about the same key is, so that a node hears what is about one
 * key in the order in which it was decided. A release that has no company goes as the node's own
 * compare-and-delete, if it has one. That saves a Valkey 26 % and a Redis 15 % of its time at 1x1.
 * What neither of these two deletes goes to the node once more, as release.lua.
 *
 * None of these functions steps a round.
 */
#ifndef ENGINE_FLIGHT_WRITE_H
#define ENGINE_FLIGHT_WRITE_H

#include "engine/flight/flights.h"

/* Write a command of a round to these nodes, or gather it. Returns those that do not take it. */
uint32_t write_command(struct flights *flights, struct flight *flight, enum round_command command,
                       uint32_t nodes, int64_t now_ns);

/* The node has forgotten the script of a round's command, or of releases: that is written in full,
 * in the same round, and in the epoch in which its vote was asked for. False: it is too late for
 * that. */
bool write_in_full(struct flights *flights, unsigned node, const struct outstanding *outstanding,
                   int64_t now_ns);

/* A release as a command of its own, by the script. The link takes releases. */
void write_release_alone(struct flights *flights, unsigned node, struct flight *flight,
                         int64_t now_ns);

/* Something else about this key is about to be written. */
void write_batched_first(struct flights *flights, const struct flight_key *key, int64_t now_ns);

/* The end of the pass: all that is gathered. What some node does not take is in
 * flights->unwritten. */
void write_all_batched(struct flights *flights, int64_t now_ns);

/* Look at a key on a node that takes votes. token: of the lock on it that is known, which a master
 * need not be told of; or NULL. */
void write_key_probe(struct flights *flights, unsigned node, struct flight_key *key,
                     const char *token, enum redis_form form, int64_t now_ns);

/* Ask a master, each in its turn, whether a far waiter has left its contention hint for this key.
 */
void write_far_query(struct flights *flights, struct flight_key *key, int64_t now_ns);

/* How long a lock has to be free for a waiter of this daemon to get it: other daemons hear of that
 * (docs/algorithm.md, "A daemon that is far from the masters"). With this round trip to the
 * masters: a report and a look, a look's answer and a SET, and one round trip more for jitter. 0:
 * the usual pauses are long enough. */
int64_t need_ns(int64_t backoff_min_ns, int64_t round_trip_ns);

/* The node is pending_releases the release of the flight's token. */
void write_later(struct flights *flights, unsigned node, const struct flight *flight,
                 int64_t now_ns);

#endif
