/*
 * The engine: requests of clients in, quorum rounds over the connections to the masters, replies
 * out. The only header of engine/ that is for its users.
 *
 * It knows no socket, no clock, no libevent and, once made, no malloc on the way of a request.
 * Events come in with the time in them (nanoseconds of CLOCK_BOOTTIME, read freshly by the callback
 * that reports them), effects go out through struct engine_io. The simulator drives this very code.
 *
 * Below are rounds in flight (flight/flights.h); above, the lock manager (locks/manager.h), which
 * decides what follows from each settled round. docs/architecture.md has the path of a LOCK.
 *
 * Each function of this header that takes the time first does what was due before, and last what
 * follows from the rounds that have settled.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/client.h"
#include "engine/flight/io.h"
#include "engine/stats.h"
#include "engine/view.h"
#include "protocol/reply.h"
#include "protocol/request.h"

struct engine;

/* NULL if there is not enough memory. Nothing happens before the first engine_on_timer(). */
struct engine *engine_new(const struct engine_rules *rules, const struct engine_io *io,
                          int64_t now_ns);
/* Also of NULL. */
void engine_free(struct engine *engine);

/*
 * Other rules from now on, of which only these count: max_hold_ns, max_extensions, backoff_*,
 * waiters_per_resource, fence_always, and the logins, for the next connection to each node. The
 * others have to be as they were: rounds and promised deadlines hang on them.
 */
void engine_apply_config(struct engine *engine, const struct engine_rules *rules);

/* id: a number of its own, for listings. */
void engine_client_init(struct engine_client *client, uint64_t id);

/*
 * Take LOCK, UNLOCK, EXTEND, STATUS or BREAK, well-formed (request_parse()). The request's views
 * need to live only for the call. The reply may come before this returns.
 */
void engine_submit(struct engine *engine, struct engine_client *client,
                   const struct request *request, int64_t now_ns);

void engine_client_end(struct engine *engine, struct engine_client *client, enum engine_end how,
                       int64_t now_ns);

/* What a connection to a node has to say. */
void engine_on_connected(struct engine *engine, unsigned node, enum channel channel,
                         int64_t now_ns);
void engine_on_closed(struct engine *engine, unsigned node, enum channel channel,
                      enum reason reason, int64_t now_ns);

/* A reply that has come `count` times in a row, from 1 on. Returns how many of these it has dealt
 * with; 0: the connection was closed over it, and no more replies of this one come. */
unsigned engine_on_replies(struct engine *engine, unsigned node, enum channel channel,
                           const struct redis_reply *reply, unsigned count, int64_t now_ns);

/* Is there something to write after what this pass wrote? Then, at its end, write it. */
bool engine_wants_flush(const struct engine *engine);
void engine_flush(struct engine *engine, int64_t now_ns);

/* Ask a node, whose link is up, for all that rounds ask for, and for the leases on all names
 * (flight/self_test.h). */
void engine_self_test(struct engine *engine, unsigned node, int64_t now_ns);

/* Why no vote is asked of this node; REASON_NONE if it votes. */
enum reason engine_refuses_vote(const struct engine *engine, unsigned node, int64_t now_ns);

/* When engine_on_timer() is wanted next, and that; calling it early does no harm. */
int64_t engine_deadline_ns(const struct engine *engine);
void engine_on_timer(struct engine *engine, int64_t now_ns);

/* What was due before now comes first: a HOLD that was lost while the daemon was stopped is told of
 * before anything else. Every function here does so; a PING has to by itself. */
void engine_catch_up(struct engine *engine, int64_t now_ns);

/* From now on requests are answered SHUTDOWN, and what is held is lost; true while answers or
 * releases are still under way. */
void engine_drain(struct engine *engine, int64_t now_ns);
bool engine_busy(const struct engine *engine);

/* There is no more time: what is not answered is answered SHUTDOWN, and each LOCK among it undone.
 */
void engine_abandon(struct engine *engine, int64_t now_ns);

#endif
