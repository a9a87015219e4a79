/*
 * Output to the masters: the commands of rounds, key probes and far queries. A command is formatted
 * once for all nodes that get the same bytes.
 *
 * The UNLOCKs of one pass are sent to a node as one command, releases.lua. This saves the masters
 * 21 % of their time at 64x1 (64 connections with one request in flight on each) and 45 % at 16x16.
 * The command is written at the end of the pass. It is written earlier if another command about one
 * of its keys is to be written: a node must get all commands about one key in the order in which
 * they were decided.
 *
 * If a pass has a single release, it is sent as the compare-and-delete command of the node, if the
 * node has one. This saves a Valkey 26 % and a Redis 15 % of its time at 1x1. If the reply to
 * one of these commands does not tell that the key was deleted or absent, the release is sent to
 * the node again, as release.lua.
 *
 * None of these functions steps a round.
 */
#ifndef ENGINE_FLIGHT_WRITE_H
#define ENGINE_FLIGHT_WRITE_H

#include "engine/flight/flights.h"

/* Write a command of a round to these nodes, or batch it. Returns the nodes that refuse to take
 * it. */
uint32_t write_command(struct flights *flights, struct flight *flight, enum round_command command,
                       uint32_t nodes, int64_t now_ns);

/* The node lacks the script of a command of a round, or releases.lua. Write the command again with
 * the whole script. It belongs to the same round, and its vote to the epoch in which it was first
 * asked for. Returns false if it is too late for that. */
bool write_in_full(struct flights *flights, unsigned node, const struct outstanding *outstanding,
                   int64_t now_ns);

/* Write a release as a single command, release.lua. The link must be able to take a release. */
void write_release_alone(struct flights *flights, unsigned node, struct flight *flight,
                         int64_t now_ns);

/* Another command about this key is about to be written: write the batched releases of this key
 * first. */
void write_batched_first(struct flights *flights, const struct flight_key *key, int64_t now_ns);

/* At the end of the pass: write all batched releases. If a node refuses to take a release, the
 * release goes to flights->unwritten. */
void write_all_batched(struct flights *flights, int64_t now_ns);

/* Send a key probe to a node that takes votes. token: the lock on this key that this daemon has
 * granted, or NULL; where the key has this token, the probe leaves no contention hint. */
void write_key_probe(struct flights *flights, unsigned node, struct flight_key *key,
                     const char *token, enum redis_form form, int64_t now_ns);

/* Ask one master whether a far waiter has left a contention hint for this key. Each call asks the
 * next master, or none if that master cannot be asked now. */
void write_far_query(struct flights *flights, struct flight_key *key, int64_t now_ns);

/*
 * How long a lock must be free for a waiter of this daemon to get it, given this round trip to the
 * masters. The time is half a round trip for the report of the change, one for the key probe, half
 * of one for the SET, one more for jitter, and a millisecond. 0: the usual pauses are long enough.
 * Other daemons learn of it from the contention hint (docs/design/algorithm.md, "The end of a
 * streak").
 */
int64_t need_ns(int64_t backoff_min_ns, int64_t round_trip_ns);

/* Record a pending release of the flight's token for this node. */
void write_defer_release(struct flights *flights, unsigned node, const struct flight *flight,
                         int64_t now_ns);

#endif
