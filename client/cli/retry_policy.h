/*
 * What is decided while a lock is asked for: whether a wait goes on after a request that got none,
 * when it asks again, and for which time to live. Pure.
 */
#ifndef CLIENT_CLI_RETRY_POLICY_H
#define CLIENT_CLI_RETRY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "client/c/redlock.h"

enum retry_decision {
    RETRY_NEVER,   /* this is the end of it */
    RETRY_AT_ONCE, /* the daemon's longest wait was shorter than ours */
    RETRY_LATER,   /* the daemon went away, or is about to */
};

/* What became of the connection on which it was asked. */
struct access_check {
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
enum retry_decision retry_decide(enum redlock_status status, const struct access_check *access,
                                 int64_t now_ns, int64_t ends_ns);

/* Where it goes on: when to ask again. Not beyond the end, and so that there is time for an
 * answer. */
int64_t retry_at_ns(int64_t now_ns, int64_t ends_ns);

/*
 * The time to live where the user gave none: the usual one, or the daemon's max_ttl where that is
 * shorter. The message of a refusal says which are possible: "... ttl-range a ttl is from 13ms to
 * 10s here". If the longest of them is shorter than *ttl_ms, take it: true.
 */
bool ttl_shorten(const char *message, int64_t *ttl_ms);

/* Is the name one of those that the `redlock run`s around this process hold: $REDLOCK_HELD, names
 * separated by spaces, which no name has? NULL: there is no list. */
bool nesting_has(const char *list, const char *name);

#endif
