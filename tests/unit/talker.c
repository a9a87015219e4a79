#include "tests/unit/talker.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINES = 1024 };

void talker_begin(struct talker *talker)
{
    talker->now_ns = 1000 * MS;
    talk_init(&talker->talk);
    talker->talk.peer = "tcp://there:1";
    talker->talk.timeout_ns = TIMEOUT;
    talk_begin(&talker->talk);
}

void talker_end(struct talker *talker)
{
    talk_free(&talker->talk);
}

/* --- what is asked --- */

uint64_t talker_ask(struct talker *talker, const struct question *question)
{
    uint64_t id = 0;
    ck_assert_int_eq(talk_ask(&talker->talk, question, talker->now_ns, NULL, NULL, &id),
                     REDLOCK_OK);
    return id;
}

uint64_t talker_acquire(struct talker *talker, const char *resource,
                        struct redlock_lock_options options)
{
    struct question question;
    ck_assert(question_acquire(&question, resource, 10000, &options, &talker->error));
    return talker_ask(talker, &question);
}

uint64_t talker_ping(struct talker *talker)
{
    return talker_ask(talker, &(struct question){.kind = QUESTION_PING});
}

const char *talker_sent(struct talker *talker)
{
    static char buf[4096];
    buf[talk_write(&talker->talk, talker->now_ns, buf, sizeof(buf) - 1)] = '\0';
    return buf;
}

void talker_expect_sent(struct talker *talker, const char *form, ...)
{
    char lines[LINES];
    va_list arguments;
    va_start(arguments, form);
    ck_assert_int_lt(vsnprintf(lines, sizeof(lines), form, arguments), LINES);
    va_end(arguments);
    ck_assert_str_eq(talker_sent(talker), lines);
}

/* --- what is answered --- */

bool talker_hear(struct talker *talker, const char *form, ...)
{
    char lines[LINES];
    va_list arguments;
    va_start(arguments, form);
    int len = vsnprintf(lines, sizeof(lines), form, arguments);
    va_end(arguments);
    ck_assert_int_lt(len, LINES);
    return talk_receive(&talker->talk, lines, (size_t)len, talker->now_ns, talker->now_ns);
}

struct redlock_event talker_next(struct talker *talker)
{
    struct redlock_event event;
    ck_assert_msg(talk_take(&talker->talk, &event), "there is no event");
    return event;
}

void talker_expect(struct talker *talker, enum redlock_event_kind kind)
{
    ck_assert_int_eq(talker_next(talker).kind, kind);
}

struct redlock_event talker_expect_answer(struct talker *talker, uint64_t id,
                                          enum redlock_status status)
{
    struct redlock_event event = talker_next(talker);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_ANSWER);
    ck_assert_uint_eq(event.id, id);
    ck_assert_str_eq(redlock_status_word(event.status), redlock_status_word(status));
    return event;
}

void talker_expect_none(struct talker *talker)
{
    struct redlock_event event;
    ck_assert_msg(!talk_take(&talker->talk, &event), "event %d of %" PRIu64 ": %s", event.kind,
                  event.id, redlock_status_word(event.status));
}

uint64_t talker_granted(struct talker *talker, const char *resource, const char *token, bool hold)
{
    uint64_t id = talker_acquire(talker, resource, (struct redlock_lock_options){.hold = hold});
    talker_sent(talker);
    ck_assert(talker_hear(talker, "#%" PRIu64 " OK %s 9000 0 -\n", id, token));
    talker_expect_answer(talker, id, REDLOCK_OK);
    return id;
}
