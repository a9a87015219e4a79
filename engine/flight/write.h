/*
 * Output to the masters: the commands of a round, formatted once for all nodes that get the same
 * bytes; and releases.
 *
 * What the UNLOCKs of one pass delete goes to a node as one command, releases.lua. This saves the
 * masters 25 % of their time at 64x1 and 43 % at 16x16. The command is written at the end of the
 * pass, or earlier before another command about one of its keys is written: a node must get the
 * commands about one key in the order in which they were decided. A single release goes as the
 * node's own compare-and-delete, if the node has one. This saves a Valkey 26 % and a Redis 15 % of
 * its time at 1x1. What neither of the two deletes goes to the node once more, as release.lua.
 *
 * None of these functions steps a round.
 */
#ifndef ENGINE_FLIGHT_WRITE_H
#define ENGINE_FLIGHT_WRITE_H

#include "engine/flight/flights.h"

/* Write or batch a command of a round for these nodes. Returns the nodes that do not accept it. */
uint32_t write_command(struct flights *flights, struct flight *flight, enum round_command command,
                       uint32_t nodes, int64_t now_ns);

/* The node lacks the script of a round's command, or of releases: write the command in full, in
 * the same round and in the epoch in which its vote was asked for. Returns false if it is too
 * late. */
bool write_in_full(struct flights *flights, unsigned node, const struct outstanding *outstanding,
                   int64_t now_ns);

/* Write a release as a single command, by the script. The link must accept releases. */
void write_release_alone(struct flights *flights, unsigned node, struct flight *flight,
                         int64_t now_ns);

/* Another command about this key is about to be written: write the batched releases first. */
void write_batched_first(struct flights *flights, const struct flight_key *key, int64_t now_ns);

/* At the end of the pass: write all batched releases. Releases that a node does not accept go to
 * flights->unwritten. */
void write_all_batched(struct flights *flights, int64_t now_ns);

/* Probe a key on a node that takes votes. token: the known lock on the key, for which no
 * contention hint is left; or NULL. */
void write_key_probe(struct flights *flights, unsigned node, struct flight_key *key,
                     const char *token, enum redis_form form, int64_t now_ns);

/* Ask one master, in rotation, whether a far waiter has left a contention hint for this key. */
void write_far_query(struct flights *flights, struct flight_key *key, int64_t now_ns);

/*
 * How long a lock must be free for a waiter of this daemon to get it, given this round trip to the
 * masters. Other daemons hear of it (docs/algorithm.md, "The end of a streak").
 * It adds up a report and the key probe, the probe's answer and the SET, and one more round trip
 * for jitter. 0: the usual pauses are long enough.
 */
int64_t need_ns(int64_t backoff_min_ns, int64_t round_trip_ns);

/* Record a pending release of the flight's token for this node. */
void write_defer_release(struct flights *flights, unsigned node, const struct flight *flight,
                         int64_t now_ns);

#endif
