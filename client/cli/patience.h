/*
 * Whether a wait goes on after a request that got no lock, and when it asks again. Pure.
 */
#ifndef CLIENT_CLI_PATIENCE_H
#define CLIENT_CLI_PATIENCE_H

#include <stdint.h>

#include "client/redlock.h"

enum patience {
    PATIENCE_OVER,    /* this is the end of it */
    PATIENCE_GOES_ON, /* the daemon's longest wait was shorter than ours */
    PATIENCE_ALONE,   /* the daemon went away, or is about to */
};

/* ends_ns: until when it may wait; INT64_MAX: for ever. */
enum patience patience_after(enum redlock_status status, int64_t now_ns, int64_t ends_ns);

/* Where it goes on: when to ask again. Not beyond the end, and so that there is time for an
 * answer. */
int64_t patience_until_ns(int64_t now_ns, int64_t ends_ns);

#endif
