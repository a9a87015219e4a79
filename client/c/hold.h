/*
 * The locks that the daemon holds for this connection, and what it has said of each. Pure, but for
 * the memory of a hold.
 *
 * A notice is what the caller is to be told. Each hold has one, so a daemon can say what it likes
 * as often as it likes: a loss takes the place of a warning, and a warning that of an older one.
 */
#ifndef CLIENT_C_HOLD_H
#define CLIENT_C_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "client/c/client_result.h"
#include "client/c/redlock.h"

/* Something to tell the caller, in the order in which it came. */
struct notice {
    TAILQ_ENTRY(notice) next;
    bool queued;
    enum redlock_event_kind kind;
};
TAILQ_HEAD(notices, notice);

/* Also where it is queued already: then it moves to the end. */
void notice_queue(struct notices *notices, struct notice *notice);
void notice_drop(struct notices *notices, struct notice *notice);

struct hold {
    struct notice notice; /* LOST or WARN */
    LIST_ENTRY(hold) entry;
    char resource[REDLOCK_RESOURCE_MAX + 1];
    char token[REDLOCK_TOKEN_LEN + 1];
    char reason[sizeof(((struct redlock_event *)0)->reason)];
};

enum { HOLD_BUCKETS = 256 };

/* By the first two digits of their tokens, which are random. One that is lost is here until that
 * has been told, and does not count. */
struct holds {
    LIST_HEAD(, hold) buckets[HOLD_BUCKETS];
    size_t count;
};

/* The hold has been allocated before there was a lock to lose. */
void holds_add(struct holds *holds, struct hold *hold, const struct redlock_lock *lock);

/* Forget this hold, and what was to be told of it. */
void holds_forget(struct holds *holds, struct notices *notices, struct hold *hold);

/* The same of the one with this token, if there is one. */
void holds_remove(struct holds *holds, struct notices *notices, const char *token);

/* The daemon says this of a token; one that is not ours does not matter. */
void holds_push(struct holds *holds, struct notices *notices, enum push push, struct word token,
                struct word reason);

/* The connection is gone, and they all with it; what is lost will still be told. */
void holds_clear(struct holds *holds, struct notices *notices);

#endif
