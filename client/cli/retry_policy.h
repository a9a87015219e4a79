/*
 * Decides for a client whose request got no lock: whether to retry, when, and with which TTL. Pure.
 */
#ifndef CLIENT_CLI_RETRY_POLICY_H
#define CLIENT_CLI_RETRY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "client/c/redlock.h"

enum retry_decision {
    RETRY_NEVER,        /* the result is final */
    RETRY_SILENTLY,     /* the daemon granted no lock, and the wait is not over */
    RETRY_WITH_MESSAGE, /* the daemon is away or stopping, or lets no more connections in now: the
                           user must learn why the wait goes on */
};

/* The state of the connection on which the request was made. */
struct access_check {
    bool let_in; /* the daemon has served the connection: its secret was accepted */
    bool ended;  /* the connection ended with this answer or before it */
};

/*
 * LIMIT and DENIED are final if the daemon has answered the request with them. But if the daemon
 * has closed the connection with LIMIT, there are too many connections, so a retry can succeed. If
 * it has closed the connection with DENIED, there are two cases. If it never served the connection,
 * the secret is wrong, which is final. Otherwise the users have changed, and a retry can succeed
 * with the new secret.
 *
 * ends_ns: end of the wait; INT64_MAX: never.
 */
enum retry_decision retry_decide(enum redlock_status status, const struct access_check *access,
                                 int64_t now_ns, int64_t ends_ns);

/* When to retry, for either kind of retry: after a short interval, but early enough that there is
 * time for an answer before ends_ns. */
int64_t retry_at_ns(int64_t now_ns, int64_t ends_ns);

/*
 * For a user who gave no TTL: reads the daemon's max_ttl from its error message. The text after the
 * code "ttl-range" names times such as "30s", "13ms" and "10s", and the last of them is max_ttl. If
 * it is shorter than *ttl_ms, stores it there and returns true.
 */
bool ttl_shorten(const char *message, int64_t *ttl_ms);

/* Reads the counts of an error message of NOQUORUM, such as ": 1/3 need=2". If enough masters have
 * voted, their votes were split. */
bool quorum_is_missing(const char *message);

/* Whether the name is in the list, which is $REDLOCK_HELD: the names that enclosing `redlock run`
 * commands hold, separated by spaces. list may be NULL. any_slot: the name is a semaphore, so look
 * for any of its slots. */
bool nesting_has(const char *list, const char *name, bool any_slot);

#endif
