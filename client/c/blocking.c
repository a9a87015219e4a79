/*
 * The functions that block: a question, and pumping until it is answered.
 */
#include <string.h>

#include "client/c/handle.h"

struct listener {
    void (*line)(void *context, const char *text);
    void *context;
};

static const struct listener nobody;

/* The event is one without a lock where nothing was sent. */
static enum redlock_status ask(struct redlock *redlock, const struct question *question,
                               const struct listener *listener, struct redlock_event *event)
{
    uint64_t id;
    *event = (struct redlock_event){.hint_ms = -1};
    enum redlock_status failed =
        handle_ask(redlock, question, listener->line, listener->context, &id);
    if (failed != REDLOCK_OK)
        return failed;
    while (!talk_take_answer(&redlock->talk, id, event)) {
        handle_wait(redlock);
        handle_pump(redlock);
    }
    handle_arm(redlock);
    return event->status;
}

static enum redlock_status refuse(struct redlock *redlock, const struct error *error)
{
    return talk_fail(&redlock->talk, REDLOCK_INVALID, "%s", error->text);
}

enum redlock_status redlock_acquire(struct redlock *redlock, const char *resource, int64_t ttl_ms,
                                    const struct redlock_wish *wish, struct redlock_lock *lock,
                                    int64_t *hint_ms)
{
    struct question question;
    struct redlock_event event;
    struct error error;
    bool fine = question_acquire(&question, resource, ttl_ms, wish, &error);
    /* Only now: the name may be the one in there. */
    *lock = (struct redlock_lock){0};
    if (!fine)
        return refuse(redlock, &error);
    enum redlock_status status = ask(redlock, &question, &nobody, &event);
    if (status == REDLOCK_OK)
        *lock = event.lock;
    if (status == REDLOCK_HELD && hint_ms != NULL)
        *hint_ms = event.hint_ms;
    return status;
}

enum redlock_status redlock_extend(struct redlock *redlock, struct redlock_lock *lock,
                                   int64_t ttl_ms)
{
    struct question question;
    struct redlock_event event;
    struct error error;
    if (!question_extend(&question, lock, ttl_ms, &error))
        return refuse(redlock, &error);
    enum redlock_status status = ask(redlock, &question, &nobody, &event);
    if (status == REDLOCK_OK)
        *lock = event.lock;
    if (status == REDLOCK_GONE)
        lock->deadline_ns = 0;
    return status;
}

enum redlock_status redlock_release(struct redlock *redlock, struct redlock_lock *lock)
{
    struct question question;
    struct redlock_event event;
    struct error error;
    lock->deadline_ns = 0;
    if (!question_release(&question, lock->resource, lock->token, &error))
        return refuse(redlock, &error);
    return ask(redlock, &question, &nobody, &event);
}

enum redlock_status redlock_query(struct redlock *redlock, const char *resource, int64_t *hint_ms)
{
    struct question question;
    struct redlock_event event;
    struct error error;
    if (!question_about(&question, QUESTION_QUERY, resource, &error))
        return refuse(redlock, &error);
    enum redlock_status status = ask(redlock, &question, &nobody, &event);
    if (status == REDLOCK_HELD && hint_ms != NULL)
        *hint_ms = event.hint_ms;
    return status;
}

enum redlock_status redlock_break(struct redlock *redlock, const char *resource, int64_t *hint_ms)
{
    struct question question;
    struct redlock_event event;
    struct error error;
    if (!question_about(&question, QUESTION_BREAK, resource, &error))
        return refuse(redlock, &error);
    enum redlock_status status = ask(redlock, &question, &nobody, &event);
    if (status == REDLOCK_HELD && hint_ms != NULL)
        *hint_ms = event.hint_ms;
    return status;
}

enum redlock_status redlock_ping(struct redlock *redlock)
{
    struct redlock_event event;
    return ask(redlock, &(struct question){.kind = QUESTION_PING}, &nobody, &event);
}

enum redlock_status redlock_list(struct redlock *redlock, const char *listing,
                                 void (*line)(void *context, const char *text), void *context)
{
    struct question question;
    struct redlock_event event;
    struct error error;
    if (!question_list(&question, listing, &error))
        return refuse(redlock, &error);
    return ask(redlock, &question, &(struct listener){line, context}, &event);
}
