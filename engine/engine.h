/*
 * The engine turns client requests into quorum rounds over the connections to the masters, and the
 * results into replies. This is the only header of engine/ for code outside of it.
 *
 * The engine is pure: it has no sockets, no clock and no libevent, and it does not allocate memory
 * while it handles a request. Each event carries its time, in nanoseconds of CLOCK_BOOTTIME, read
 * by the callback that reports the event. Effects go out through struct engine_io. The simulator
 * runs this same code.
 *
 * The engine has two layers: the rounds in flight (flight/flights.h), and above them the lock
 * manager (locks/manager.h), which decides what follows from each settled round.
 * docs/architecture.md shows the path of a LOCK.
 *
 * Each function below that takes now_ns first handles timers that are due, and last the rounds that
 * have settled.
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

/* Returns NULL if there is not enough memory. The engine does nothing before the first
 * engine_on_timer(). */
struct engine *engine_new(const struct engine_rules *rules, const struct engine_io *io,
                          int64_t now_ns);
/* engine may be NULL. */
void engine_free(struct engine *engine);

/*
 * Apply a changed configuration. Only these rules may differ: max_hold_ns, max_extensions,
 * backoff_*, waiters_per_resource, fence_always, and the logins, which each node's next connection
 * uses. Rounds in flight and promised deadlines depend on the others.
 */
void engine_apply_config(struct engine *engine, const struct engine_rules *rules);

/* id: unique among clients, for listings. */
void engine_client_init(struct engine_client *client, uint64_t id);

/*
 * Handle a LOCK, UNLOCK, EXTEND, STATUS or BREAK that request_parse() has accepted. The views in
 * the request must be valid during the call only. The reply may be sent before the function
 * returns.
 */
void engine_submit(struct engine *engine, struct engine_client *client,
                   const struct request *request, int64_t now_ns);

void engine_client_end(struct engine *engine, struct engine_client *client, enum engine_end how,
                       int64_t now_ns);

/* Events of the connections to a node. */
void engine_on_connected(struct engine *engine, unsigned node, enum channel channel,
                         int64_t now_ns);
void engine_on_closed(struct engine *engine, unsigned node, enum channel channel,
                      enum reason reason, int64_t now_ns);

/* A reply that a node has sent `count` times in a row, count >= 1. Returns how many of them were
 * handled. 0: the reply made the engine close the connection; discard the remaining input. */
unsigned engine_on_replies(struct engine *engine, unsigned node, enum channel channel,
                           const struct redis_reply *reply, unsigned count, int64_t now_ns);

/* The caller flushes at the end of each pass in which engine_wants_flush() is true. */
bool engine_wants_flush(const struct engine *engine);
void engine_flush(struct engine *engine, int64_t now_ns);

/* Send to a node whose link is up each command that rounds use, and read the leases on all names
 * (flight/self_test.h). */
void engine_self_test(struct engine *engine, unsigned node, int64_t now_ns);

/* Why the daemon asks this node for no votes; REASON_NONE if the node votes. */
enum reason engine_refuses_vote(const struct engine *engine, unsigned node, int64_t now_ns);

/* Call engine_on_timer() at engine_deadline_ns(); an early call is harmless. */
int64_t engine_deadline_ns(const struct engine *engine);
void engine_on_timer(struct engine *engine, int64_t now_ns);

/*
 * Handle the timers that are due. After the daemon was stopped, a client must hear that its HOLD
 * was lost before it hears anything else. The functions above do this themselves; the caller of a
 * PING has to call engine_catch_up() first.
 */
void engine_catch_up(struct engine *engine, int64_t now_ns);

/* Answer requests with SHUTDOWN from now on, and report each HOLD as lost. engine_busy() is true
 * while replies or releases are still under way. */
void engine_drain(struct engine *engine, int64_t now_ns);
bool engine_busy(const struct engine *engine);

/* The time to drain is over: answer each pending request with SHUTDOWN, and undo each LOCK among
 * them. */
void engine_abandon(struct engine *engine, int64_t now_ns);

#endif
