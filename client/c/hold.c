#include "client/c/hold.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void notice_drop(struct notices *notices, struct notice *notice)
{
    if (notice->queued)
        TAILQ_REMOVE(notices, notice, next);
    notice->queued = false;
}

void notice_queue(struct notices *notices, struct notice *notice)
{
    notice_drop(notices, notice);
    TAILQ_INSERT_TAIL(notices, notice, next);
    notice->queued = true;
}

/* The token must be valid. */
static unsigned bucket_of(const char *token)
{
    const char digits[] = {token[0], token[1], '\0'};
    return (unsigned)strtoul(digits, NULL, 16) % HOLD_BUCKETS;
}

static struct client_hold *find(struct client_holds *holds, const char *token)
{
    struct client_hold *hold;
    LIST_FOREACH (hold, &holds->buckets[bucket_of(token)], entry)
        if (memcmp(hold->token, token, REDLOCK_TOKEN_LEN) == 0)
            return hold;
    return NULL;
}

void holds_add(struct client_holds *holds, struct client_hold *hold,
               const struct redlock_lock *lock)
{
    memcpy(hold->resource, lock->resource, sizeof(hold->resource));
    memcpy(hold->token, lock->token, sizeof(hold->token));
    LIST_INSERT_HEAD(&holds->buckets[bucket_of(hold->token)], hold, entry);
    holds->count++;
}

static bool is_lost(const struct client_hold *hold)
{
    return hold->notice.kind == REDLOCK_EVENT_LOST;
}

void holds_forget(struct client_holds *holds, struct notices *notices, struct client_hold *hold)
{
    LIST_REMOVE(hold, entry);
    holds->count -= is_lost(hold) ? 0 : 1;
    notice_drop(notices, &hold->notice);
    free(hold);
}

void holds_remove(struct client_holds *holds, struct notices *notices, const char *token)
{
    struct client_hold *hold = find(holds, token);
    if (hold != NULL)
        holds_forget(holds, notices, hold);
}

void holds_push(struct client_holds *holds, struct notices *notices, enum push push,
                struct word token, struct word reason)
{
    struct client_hold *hold = find(holds, token.at);
    if (hold == NULL || is_lost(hold))
        return;
    size_t len = reason.len < sizeof(hold->reason) ? reason.len : sizeof(hold->reason) - 1;
    memcpy(hold->reason, reason.at, len);
    hold->reason[len] = '\0';
    hold->notice.kind = push == PUSH_IS_LOST ? REDLOCK_EVENT_LOST : REDLOCK_EVENT_WARN;
    /* LOST takes the queue position of a WARN that the caller has not taken yet. */
    if (!hold->notice.queued)
        notice_queue(notices, &hold->notice);
    if (push == PUSH_IS_LOST)
        holds->count--;
}

void holds_clear(struct client_holds *holds, struct notices *notices)
{
    for (unsigned i = 0; i < HOLD_BUCKETS; i++) {
        struct client_hold *hold = LIST_FIRST(&holds->buckets[i]);
        for (struct client_hold *next; hold != NULL; hold = next) {
            next = LIST_NEXT(hold, entry);
            if (!is_lost(hold))
                holds_forget(holds, notices, hold);
        }
    }
}
