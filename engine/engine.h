/*
 * The engine turns client requests into quorum rounds over the connections to the masters, and
 * turns the results of these rounds into replies. The server includes only this header,
 * engine/view.h, and a few helpers that hold no locks (pool, histogram, node_set). Of engine/,
 * config/ includes only round/validity.h.
 *
 * The engine is pure: it has no sockets, no clock and no libevent, and it does not allocate memory
 * while it handles a request. Each event carries its time, in nanoseconds of CLOCK_BOOTTIME, read
 * by the callback that reports the event. Effects go out through struct engine_io. The simulator
 * runs this same code.
 *
 * The engine has two layers. The lower one has the rounds in flight (flight/flights.h). The lock
 * manager above it (locks/manager.h) decides what follows when a round is settled, that is, when
 * its outcome is known. docs/design/architecture.md shows the path of a LOCK.
 *
 * A function below that reports an event (a request, a reply, a connection made or lost, a timer)
 * first runs the timers that are due, and at its end acts on the rounds that have been settled
 * meanwhile. engine_on_closed() is an exception: it first marks the connection as closed.
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

/* Returns NULL if there is not enough memory. rules and io are copied. The engine does nothing
 * before the first engine_on_timer(). */
struct engine *engine_new(const struct engine_rules *rules, const struct engine_io *io,
                          int64_t now_ns);
/* engine may be NULL. */
void engine_free(struct engine *engine);

/*
 * Apply a changed configuration. Only these rules may differ from the present ones: max_hold_ns,
 * max_extensions, backoff_*, waiters_per_resource, fence_always, and the logins. Changed logins
 * take effect with the next connection to each node. No other rule may change, because rounds in
 * flight and deadlines promised to clients depend on it.
 */
void engine_apply_config(struct engine *engine, const struct engine_rules *rules);

/* id: unique among clients; listings show it. */
void engine_client_init(struct engine_client *client, uint64_t id);

/*
 * Handle a LOCK, UNLOCK, EXTEND, STATUS or BREAK that request_parse() has accepted. The strings
 * that the request points to have to be valid during the call only. The engine may send the reply
 * before this function returns.
 */
void engine_submit(struct engine *engine, struct engine_client *client,
                   const struct request *request, int64_t now_ns);

/* The client's connection ends; enum engine_end says how, and what that means for its requests and
 * locks. */
void engine_client_end(struct engine *engine, struct engine_client *client, enum engine_end how,
                       int64_t now_ns);

/* A connection to a node has been made, or is lost. */
void engine_on_connected(struct engine *engine, unsigned node, enum channel channel,
                         int64_t now_ns);
void engine_on_closed(struct engine *engine, unsigned node, enum channel channel,
                      enum reason reason, int64_t now_ns);

/* Handle a reply that a node has sent `count` times in a row, count >= 1. Returns how many of these
 * copies were handled; the caller passes the others again. 0: the reply made the engine close the
 * connection, and the caller discards the remaining input. */
unsigned engine_on_replies(struct engine *engine, unsigned node, enum channel channel,
                           const struct redis_reply *reply, unsigned count, int64_t now_ns);

/* End a pass: write the batched releases, the guard's commands and the due extensions of HOLDs, and
 * start requests that wait for their start, as far as there is room. The caller calls
 * engine_flush() at the end of each pass in which engine_wants_flush() is true. */
bool engine_wants_flush(const struct engine *engine);
void engine_flush(struct engine *engine, int64_t now_ns);

/* Test a node whose link is up: send it each command that rounds use, and read its name leases
 * (flight/self_test.h). The results go to io.self_tested() and io.lease_found(). */
void engine_self_test(struct engine *engine, unsigned node, int64_t now_ns);

/*
 * Call engine_on_timer() at engine_deadline_ns(); an early call is harmless. heard_ns, at most
 * now_ns: every reply that had arrived by then has been handled. A round or a master is late only
 * if its deadline is not after heard_ns. So a master does not become suspect because the daemon was
 * too busy to read its answer.
 */
int64_t engine_deadline_ns(const struct engine *engine);
void engine_on_timer(struct engine *engine, int64_t heard_ns, int64_t now_ns);

/*
 * Run the due timers of HOLDs, waits and queues. The timers of HOLDs are all run; of the others, a
 * pass runs at most LIMIT_TIMERS. After the daemon was stopped, a client must hear that its HOLD
 * was lost before it hears anything else. The functions that report events call engine_catch_up()
 * themselves. The server answers PING without the engine, so it calls engine_catch_up() before that
 * reply.
 */
void engine_catch_up(struct engine *engine, int64_t now_ns);

/* Reply SHUTDOWN to each request from now on and to each LOCK that waits, and report each HOLD as
 * lost. Rounds under way continue. engine_busy() is true while a round has no outcome yet, a
 * request waits for its round to start, or a node whose link is up has not answered all
 * commands. */
void engine_drain(struct engine *engine, int64_t now_ns);
bool engine_busy(const struct engine *engine);

/* May clients be read? False while so many rounds are in flight that more might not be answered in
 * time, which is for node_timeout at most. */
bool engine_takes_requests(const struct engine *engine);

/* The number of requests that wait for their round to start. */
size_t engine_held_back(const struct engine *engine);

/* The time to drain is over: reply SHUTDOWN to each request that is still pending, and undo each
 * LOCK among them. */
void engine_abandon(struct engine *engine, int64_t now_ns);

#endif
