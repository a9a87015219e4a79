/*
 * A callback at the end of a pass of the event loop. It sends the commands to masters and the
 * replies to clients that were written during the pass, with one write for each connection.
 *
 * Any module can request the callback, any number of times in a pass. The callback runs once, after
 * all events that were active at the first request. The owner of the loop provides the callback, so
 * a module that requests it does not depend on the layers above.
 */
#ifndef SERVER_NET_PASS_H
#define SERVER_NET_PASS_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct pass {
    struct event *end;
    bool end_due;    /* `end` is active, or its callback is running */
    uint64_t number; /* passes that ended with the callback */
};

/* False if there is not enough memory. */
bool pass_init(struct pass *pass, struct event_base *base, event_callback_fn on_end, void *context);

/* May also be called on a struct that is all zero because it was never initialised. */
void pass_deinit(struct pass *pass);

/* Run the callback at the end of this pass, because output was written or the engine was called.
 * Inside the callback this has no effect until pass_ended(). */
void pass_want_end(struct pass *pass);

/* The callback calls this when its work is done. */
void pass_ended(struct pass *pass);

#endif
