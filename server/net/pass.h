/*
 * A callback at the end of a pass of the event loop. It sends the commands to masters and the
 * replies to clients that were written during the pass, with one write for each connection.
 *
 * Any module can request the callback, any number of times in a pass. The callback runs once, after
 * all events that were active at the first request. The owner of the loop provides the callback, so
 * a module that requests it does not depend on the layers above.
 *
 * Work whose amount clients decide has PASS_BUDGET_NS in each pass. What exceeds this waits for the
 * next pass, so that masters are read in time. Each poll costs up to 2 ms if thousands of sockets
 * are ready, so a smaller budget costs throughput: with 9,000 clients 2 ms gave 0.65 of the best
 * throughput and 10 ms 0.77, but 20 ms and more 0.86 (`make bench-overload`).
 */
#ifndef SERVER_NET_PASS_H
#define SERVER_NET_PASS_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/units.h"

#define PASS_BUDGET_NS (20 * NS_PER_MS)

/* The time to send the output of one client at the end of the pass, which is part of the budget.
 * Measured on 2026-11-24 with 9,000 clients: 8 us over TCP on loopback, 1.4 us over a unix socket.
 * Output is never put off: LOST has to arrive in time, and a client whose output waited could be
 * taken for one that does not read. */
#define PASS_SEND_NS 5000

/* Two kinds of work have a budget of their own in each pass: freeing ended sessions, and closing
 * connections that did not authenticate in time. So busy clients cannot keep these in memory, and
 * these cannot keep other clients waiting. */
#define PASS_SLICE_NS (PASS_BUDGET_NS / 4)

struct pass {
    struct event *end;
    int64_t until_ns;  /* when the budget of this pass ends; 0: no client has been served yet */
    int64_t output_ns; /* how long it will take to send the output to clients */
    bool end_due;      /* `end` is active, or its callback is running */
    uint64_t number;   /* passes that ended with the callback */
};

/* False if there is not enough memory. */
bool pass_init(struct pass *pass, struct event_base *base, event_callback_fn on_end, void *context);

/* May also be called on a struct that is all zero because it was never initialised. */
void pass_deinit(struct pass *pass);

/* Run the callback at the end of this pass, because output was written or the engine was called.
 * Inside the callback this has no effect until pass_ended(). */
void pass_want_end(struct pass *pass);

/* Run the event in the next pass, after the sockets have been read. An active event would run
 * before that, and could keep the loop from reading. */
void pass_run_in_next(struct event *event);

/* Is there time left for clients in this pass? The first call in a pass starts the budget, so it
 * always returns true. It also requests the callback, because the budget ends with the pass. */
bool pass_has_time(struct pass *pass, int64_t now_ns);

/* A client has output that is sent at the end of this pass. */
static inline void pass_note_output(struct pass *pass)
{
    pass->output_ns += PASS_SEND_NS;
}

/* The callback calls this when its work is done. The next pass has a new budget. */
void pass_ended(struct pass *pass);

#endif
