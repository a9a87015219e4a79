/*
 * Whether a wait goes on after a request that got no lock, and when it asks again. Pure.
 */
#ifndef CLIENT_CLI_PATIENCE_H
#define CLIENT_CLI_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/c/redlock.h"

enum patience {
    PATIENCE_OVER,    /* this is the end of it */
    PATIENCE_GOES_ON, /* the daemon's longest wait was shorter than ours */
    PATIENCE_ALONE,   /* the daemon went away, or is about to */
};

/* What became of the connection on which it was asked. */
struct passage {
    bool let_in; /* the daemon has served it */
    bool ended;  /* with this answer, or before it */
};

/*
 * LIMIT and DENIED are final where they answer the request. Where the connection ended with them
 * they are a farewell: to one too many, or to those of yesterday when the users change. LIMIT says
 * nothing about us; DENIED does on a connection that was never let in: it is the secret.
 *
 * ends_ns: until when it may wait; INT64_MAX: for ever.
 */
enum patience patience_after(enum redlock_status status, const struct passage *passage,
                             int64_t now_ns, int64_t ends_ns);

/* Where it goes on: when to ask again. Not beyond the end, and so that there is time for an
 * answer. */
int64_t patience_until_ns(int64_t now_ns, int64_t ends_ns);

#endif
