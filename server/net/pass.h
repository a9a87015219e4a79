/*
 * The end of the present pass of the event loop. What belongs to one pass goes out together there:
 * commands to the masters and answers to clients, each in one write.
 *
 * Any module may ask for it, as often as it likes. The callback runs once, after all events that
 * were active when it was asked for. It belongs to the owner of the loop, and knows what has to be
 * done; a module that asks knows nothing above itself.
 */
#ifndef SERVER_NET_PASS_H
#define SERVER_NET_PASS_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct pass {
    struct event *end;
    bool end_due;    /* `end` is active, or its callback runs and is not done yet */
    uint64_t number; /* of passes that have ended so */
};

/* False if there is not enough memory. */
bool pass_init(struct pass *pass, struct event_base *base, event_callback_fn on_end, void *context);

/* Also for one that was never initialised and is all zero. */
void pass_deinit(struct pass *pass);

/* Something was written, or the engine was called: have the callback run at the end of this pass.
 * In the callback itself this does nothing until pass_ended(). */
void pass_want_end(struct pass *pass);

/* For the callback, once it has done what there was to do. */
void pass_ended(struct pass *pass);

#endif
