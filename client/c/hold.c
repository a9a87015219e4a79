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

static unsigned digit(char hex)
{
    return (unsigned)(hex <= '9' ? hex - '0' : hex - 'a' + 10);
}

/* Of a token that has been checked. */
static unsigned bucket_of(const char *token)
{
    return (digit(token[0]) << 4 | digit(token[1])) % HOLD_BUCKETS;
}

static struct hold *find(struct holds *holds, const char *token)
{
    struct hold *hold;
    LIST_FOREACH (hold, &holds->buckets[bucket_of(token)], entry)
        if (memcmp(hold->token, token, REDLOCK_TOKEN_LEN) == 0)
            return hold;
    return NULL;
}

void holds_add(struct holds *holds, struct hold *hold, const struct redlock_lock *lock)
{
    memcpy(hold->resource, lock->resource, sizeof(hold->resource));
    memcpy(hold->token, lock->token, sizeof(hold->token));
    LIST_INSERT_HEAD(&holds->buckets[bucket_of(hold->token)], hold, entry);
    holds->count++;
}

static void take_out(struct holds *holds, struct hold *hold)
{
    LIST_REMOVE(hold, entry);
    holds->count--;
}

static void forget(struct holds *holds, struct notices *notices, struct hold *hold)
{
    take_out(holds, hold);
    notice_drop(notices, &hold->notice);
    free(hold);
}

/* That of a hold which is lost, and no more among the others. */
static struct hold *find_lost(const struct notices *notices, const char *token)
{
    struct notice *notice;
    TAILQ_FOREACH (notice, notices, next) {
        struct hold *hold = (struct hold *)((char *)notice - offsetof(struct hold, notice));
        if (notice->kind == REDLOCK_EVENT_LOST &&
            memcmp(hold->token, token, REDLOCK_TOKEN_LEN) == 0)
            return hold;
    }
    return NULL;
}

void holds_remove(struct holds *holds, struct notices *notices, const char *token)
{
    struct hold *hold = find(holds, token);
    if (hold != NULL) {
        forget(holds, notices, hold);
        return;
    }
    hold = find_lost(notices, token);
    if (hold != NULL) {
        notice_drop(notices, &hold->notice);
        free(hold);
    }
}

void holds_push(struct holds *holds, struct notices *notices, enum push push, struct word token,
                struct word reason)
{
    struct hold *hold = find(holds, token.at);
    if (hold == NULL)
        return;
    size_t len = reason.len < sizeof(hold->reason) ? reason.len : sizeof(hold->reason) - 1;
    memcpy(hold->reason, reason.at, len);
    hold->reason[len] = '\0';
    hold->notice.kind = push == PUSH_IS_LOST ? REDLOCK_EVENT_LOST : REDLOCK_EVENT_WARN;
    /* A loss keeps the place of the warning that nobody has read yet: it cannot be told too early.
     */
    if (!hold->notice.queued)
        notice_queue(notices, &hold->notice);
    if (push == PUSH_IS_LOST)
        take_out(holds, hold);
}

void holds_clear(struct holds *holds, struct notices *notices)
{
    for (unsigned i = 0; i < HOLD_BUCKETS; i++)
        while (!LIST_EMPTY(&holds->buckets[i]))
            forget(holds, notices, LIST_FIRST(&holds->buckets[i]));
}
