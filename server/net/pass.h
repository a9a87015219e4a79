/*
 * The end of the current pass of the event loop. Commands to the masters and replies to clients
 * that belong to one pass are sent there, each connection's in one write.
 *
 * Any module may request the callback, any number of times. It runs once, after all events that
 * were active at the first request. The owner of the loop provides the callback and knows what it
 * has to do, so a module that requests it does not depend on the layers above.
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

/* Also valid for one that was never initialised and is all zero. */
void pass_deinit(struct pass *pass);

/* Run the callback at the end of this pass, because output was written or the engine was called.
 * Inside the callback this has no effect until pass_ended(). */
void pass_want_end(struct pass *pass);

/* The callback calls this when its work is done. */
void pass_ended(struct pass *pass);

#endif
