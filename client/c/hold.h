/*
 * The locks that the daemon holds for this connection, and the LOST and WARN lines about these
 * locks. Pure, except that this module frees holds.
 *
 * A notice is a queued event for the caller. Each hold has exactly one notice, so a daemon that
 * sends many lines cannot fill memory: a LOST or WARN line replaces an earlier WARN line.
 */
#ifndef CLIENT_C_HOLD_H
#define CLIENT_C_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "client/c/client_result.h"
#include "client/c/redlock.h"

/* An event for the caller, queued in the order of arrival. */
struct notice {
    TAILQ_ENTRY(notice) next;
    bool queued;
    enum redlock_event_kind kind;
};
TAILQ_HEAD(notices, notice);

/* Appends the notice; if it is queued already, moves it to the end. */
void notice_queue(struct notices *notices, struct notice *notice);
void notice_drop(struct notices *notices, struct notice *notice);

struct client_hold {
    struct notice notice; /* LOST or WARN */
    LIST_ENTRY(client_hold) entry;
    char resource[REDLOCK_RESOURCE_MAX + 1];
    char token[REDLOCK_TOKEN_LEN + 1];
    char reason[sizeof(((struct redlock_event *)0)->reason)];
};

enum { HOLD_BUCKETS = 256 };

/* A hash table by the first two digits of the token, which are random. A lost hold stays in the
 * table until the caller has taken its event. */
struct client_holds {
    LIST_HEAD(, client_hold) buckets[HOLD_BUCKETS];
    size_t count; /* without lost holds */
};

/* Adds a hold, which the caller allocated before the request was sent, so that a grant cannot fail
 * for lack of memory. */
void holds_add(struct client_holds *holds, struct client_hold *hold,
               const struct redlock_lock *lock);

/* Removes and frees the hold, with its notice. */
void holds_forget(struct client_holds *holds, struct notices *notices, struct client_hold *hold);

/* Removes the hold with this token, if there is one. */
void holds_remove(struct client_holds *holds, struct notices *notices, const char *token);

/* Handles a LOST or WARN line; ignores an unknown token. */
void holds_push(struct client_holds *holds, struct notices *notices, enum push push,
                struct word token, struct word reason);

/* Removes all holds when the connection has ended, except lost holds, which stay until the caller
 * has taken their events. */
void holds_clear(struct client_holds *holds, struct notices *notices);

#endif
