/*
 * client/talk.h and client/hold.h: requests under way, what becomes of them, and what is told in
 * which order. Time is a number here, and the daemon is what the test says.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/talk.h"
#include "tests/runner.h"

#define TOKEN   "0123456789abcdef0123456789abcdef01234567"
#define OTHER   "1123456789abcdef0123456789abcdef01234567"
#define MS      NS_PER_MS
#define TIMEOUT (5000 * MS)

static struct talk talk;
static int64_t now_ns;
static struct error error;

static void begin(void)
{
    now_ns = 1000 * MS;
    talk_init(&talk);
    talk.peer = "tcp://there:1";
    talk.timeout_ns = TIMEOUT;
    talk_begin(&talk);
}

static void end(void)
{
    talk_free(&talk);
}

static uint64_t ask(const struct question *question)
{
    uint64_t id = 0;
    ck_assert_int_eq(talk_ask(&talk, question, now_ns, NULL, NULL, &id), REDLOCK_OK);
    return id;
}

static uint64_t acquire(const char *resource, struct redlock_wish wish)
{
    struct question question;
    ck_assert(question_acquire(&question, resource, 10000, &wish, &error));
    return ask(&question);
}

static uint64_t ping(void)
{
    return ask(&(struct question){.kind = QUESTION_PING});
}

/* All that is to be sent, as a text that lives until the next call. */
static const char *sent(void)
{
    static char buf[4096];
    buf[talk_write(&talk, now_ns, buf, sizeof(buf) - 1)] = '\0';
    return buf;
}

__attribute__((format(printf, 1, 2))) static const char *text(const char *format, ...)
{
    static char bufs[4][512];
    static unsigned next;
    char *buf = bufs[next++ % 4];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buf, 512, format, arguments);
    va_end(arguments);
    return buf;
}

static bool say(const char *bytes)
{
    return talk_receive(&talk, bytes, strlen(bytes), now_ns, now_ns);
}

static void expect_sent(const char *expected)
{
    ck_assert_str_eq(sent(), expected);
}

static struct redlock_event next_event(void)
{
    struct redlock_event event;
    ck_assert_msg(talk_take(&talk, &event), "there is no event");
    return event;
}

static void expect_none(void)
{
    struct redlock_event event;
    ck_assert_msg(!talk_take(&talk, &event), "event %d of %" PRIu64 ": %s", event.kind, event.id,
                  redlock_status_word(event.status));
}

static struct redlock_event expect_answer(uint64_t id, enum redlock_status status)
{
    struct redlock_event event = next_event();
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_ANSWER);
    ck_assert_uint_eq(event.id, id);
    ck_assert_str_eq(redlock_status_word(event.status), redlock_status_word(status));
    return event;
}

static void expect_kind(enum redlock_event_kind kind)
{
    ck_assert_int_eq(next_event().kind, kind);
}

/* Acquired, and taken. */
static uint64_t granted(const char *resource, const char *token, bool hold)
{
    uint64_t id = acquire(resource, (struct redlock_wish){.hold = hold});
    sent();
    ck_assert(say(text("#%" PRIu64 " OK %s 9000 0 -\n", id, token)));
    expect_answer(id, REDLOCK_OK);
    return id;
}

/* --- asking and answering --- */

START_TEST(requests_are_sent_in_order_and_answered_in_any)
{
    uint64_t a = acquire("a", (struct redlock_wish){.wait_ms = 60000});
    uint64_t b = ping();
    ck_assert(talk_has_output(&talk));
    expect_sent(text("#%" PRIu64 " LOCK a 10000 WAIT 60000\n#%" PRIu64 " PING\n", a, b));
    ck_assert(!talk_has_output(&talk));
    expect_none();
    ck_assert(say(text("#%" PRIu64 " PONG\n", b)));
    expect_answer(b, REDLOCK_OK);
    now_ns += 300 * MS;
    ck_assert(say(text("#%" PRIu64 " OK " TOKEN " 9000 100 -\n", a)));
    struct redlock_event event = expect_answer(a, REDLOCK_OK);
    ck_assert_int_eq(event.sent_ns, 1000 * MS);
    ck_assert_int_eq(event.lock.deadline_ns, 10100 * MS);
    expect_none();
}
END_TEST

START_TEST(a_request_is_sent_when_it_is_written_not_when_it_is_asked)
{
    char buf[QUESTION_LINE];
    uint64_t a = acquire("a", (struct redlock_wish){0});
    uint64_t b = acquire("b", (struct redlock_wish){0});
    now_ns += 10 * MS;
    ck_assert_uint_eq(talk_write(&talk, now_ns, buf, sizeof(buf) - 1), 0);
    ck_assert_uint_gt(talk_write(&talk, now_ns, buf, sizeof(buf)), 0);
    now_ns += 10 * MS;
    sent();
    now_ns += 10 * MS;
    ck_assert(say(text("#%" PRIu64 " OK " TOKEN " 10000 0 -\n", b)));
    ck_assert_int_eq(expect_answer(b, REDLOCK_OK).lock.deadline_ns, 11020 * MS);
    ck_assert(say(text("#%" PRIu64 " OK " OTHER " 10000 0 -\n", a)));
    ck_assert_int_eq(expect_answer(a, REDLOCK_OK).lock.deadline_ns, 11010 * MS);
}
END_TEST

START_TEST(a_connection_is_named_first_and_again_when_it_is_new)
{
    talk_set_label(&talk, "me", true);
    uint64_t a = ping();
    expect_sent(text("#name NAME me\n#%" PRIu64 " PING\n", a));
    talk_set_label(&talk, "you", true);
    expect_sent("");
    ck_assert(say("#name ERR bad-arguments no\n"));
    expect_sent("#name NAME you\n");
    ck_assert(say("#name OK\n"));
    expect_sent("");
    talk_end(&talk, REDLOCK_BROKEN, "gone", true);
    talk_begin(&talk);
    expect_sent("#name NAME you\n");
    ck_assert(say("#name OK\n"));
    ck_assert(!say("#name OK\n"));
}
END_TEST

static void note_line(void *context, const char *line)
{
    char *lines = context;
    strcat(lines, line);
    strcat(lines, "|");
}

START_TEST(the_lines_of_a_listing_are_passed_on)
{
    struct question question;
    struct redlock_event event;
    char lines[512] = "";
    uint64_t a;
    uint64_t b;
    ck_assert(question_list(&question, "NODES", &error));
    ck_assert_int_eq(talk_ask(&talk, &question, now_ns, note_line, lines, &a), REDLOCK_OK);
    ck_assert(question_list(&question, "VERSION", &error));
    ck_assert_int_eq(talk_ask(&talk, &question, now_ns, note_line, lines, &b), REDLOCK_OK);
    sent();
    ck_assert(say(text("#%" PRIu64 " node=a\n#%" PRIu64 " VERSION 1 x\n#%" PRIu64
                       " node=b\n#%" PRIu64 " END\n",
                       a, b, a, a)));
    ck_assert_str_eq(lines, "node=a|VERSION 1 x|node=b|");
    ck_assert(talk_take_answer(&talk, a, &event));
    ck_assert_int_eq(event.status, REDLOCK_OK);
    ck_assert(!talk_take_answer(&talk, a, &event));
    expect_answer(b, REDLOCK_OK);
}
END_TEST

START_TEST(a_place_is_told_at_the_end_of_the_listing)
{
    struct question question;
    ck_assert(question_about(&question, QUESTION_PLACE, "a", &error));
    uint64_t a = ask(&question);
    expect_sent(text("#%" PRIu64 " LOCKS a\n", a));
    ck_assert(say(text("#%" PRIu64 " resource=a token=- place=2 waiters=5\n", a)));
    expect_none();
    ck_assert(say(text("#%" PRIu64 " END\n", a)));
    ck_assert_uint_eq(expect_answer(a, REDLOCK_OK).place, 2);
    uint64_t b = ask(&question);
    sent();
    ck_assert(say(text("#%" PRIu64 " END\n", b)));
    ck_assert_uint_eq(expect_answer(b, REDLOCK_OK).place, 0);
}
END_TEST

START_TEST(there_is_a_bound_on_requests_until_they_are_taken)
{
    uint64_t first = ping();
    uint64_t id;
    for (unsigned i = 1; i < LIMIT_CLIENT_REQUESTS; i++)
        ping();
    const struct question one_more = {.kind = QUESTION_PING};
    while (talk_has_output(&talk))
        sent();
    ck_assert_int_eq(talk_ask(&talk, &one_more, now_ns, NULL, NULL, &id), REDLOCK_LIMIT);
    ck_assert_str_eq(talk.error, "1024 requests are under way, or not taken yet");
    ck_assert(say(text("#%" PRIu64 " PONG\n", first)));
    ck_assert_int_eq(talk_ask(&talk, &one_more, now_ns, NULL, NULL, &id), REDLOCK_LIMIT);
    expect_answer(first, REDLOCK_OK);
    ck_assert_int_eq(talk_ask(&talk, &one_more, now_ns, NULL, NULL, &id), REDLOCK_OK);
    ck_assert_uint_ne(id, first);
}
END_TEST

/* --- what is no answer --- */

/* Behind the requests #1024 (LOCK a), #2049 (PING) and before a hold of OTHER. */
static const struct {
    const char *bytes;
    enum redlock_status status;
} foreign[] = {
    {"#1 PONG\n", REDLOCK_GARBLED},
    {"#1024 PONG\n", REDLOCK_GARBLED},
    {"#2049 OK " TOKEN " 9000 0 -\n", REDLOCK_GARBLED},
    {"#02049 PONG\n", REDLOCK_GARBLED},
    {"#+2049 PONG\n", REDLOCK_GARBLED},
    {"#20490000000000000000 PONG\n", REDLOCK_GARBLED},
    {"#18446744073709553665 PONG\n", REDLOCK_GARBLED},
    {"#2049 pong\n", REDLOCK_GARBLED},
    {"#2049 PONG\r\n", REDLOCK_GARBLED},
    {"#name OK\n", REDLOCK_GARBLED},
    {"PONG\n", REDLOCK_GARBLED},
    {"OK " TOKEN " 9000 0 -\n", REDLOCK_GARBLED},
    {"ERR unknown-verb x\n", REDLOCK_GARBLED},
    {"\n", REDLOCK_GARBLED},
    {"!\n", REDLOCK_GARBLED},
    {"! LOST a x y\n", REDLOCK_GARBLED},
    {"HTTP/1.1 400 Bad Request\r\n", REDLOCK_GARBLED},
    {"-ERR unknown command\r\n", REDLOCK_GARBLED},
    {"\x15\x03\x01\n", REDLOCK_GARBLED},
    {"LIMIT clients\n", REDLOCK_LIMIT},
    {"SHUTDOWN\n", REDLOCK_SHUTDOWN},
    {"DENIED you\n", REDLOCK_DENIED},
};

START_TEST(what_answers_nothing_ends_the_connection)
{
    uint64_t a = acquire("a", (struct redlock_wish){0});
    uint64_t b = ping();
    ck_assert_uint_eq(a, 1024);
    ck_assert_uint_eq(b, 2049);
    sent();
    ck_assert(!say(foreign[_i].bytes));
    ck_assert(expect_answer(a, foreign[_i].status).ended);
    ck_assert(expect_answer(b, foreign[_i].status).ended);
    expect_kind(REDLOCK_EVENT_CLOSED);
    expect_none();
    ck_assert_uint_eq(talk.living, 0);
    ck_assert_uint_eq(talk.abandoned, 0);
}
END_TEST

/* Also if another connection has been made before it is taken. */
START_TEST(a_farewell_is_told_from_an_answer)
{
    uint64_t a = ping();
    uint64_t b = ping();
    sent();
    ck_assert(say(text("#%" PRIu64 " LIMIT requests\n", a)));
    ck_assert(!say("LIMIT clients\n"));
    talk_begin(&talk);
    ck_assert(!expect_answer(a, REDLOCK_LIMIT).ended);
    ck_assert(expect_answer(b, REDLOCK_LIMIT).ended);
    uint64_t c = ping();
    sent();
    ck_assert(say(text("#%" PRIu64 " PONG\n", c)));
    ck_assert(!expect_answer(c, REDLOCK_OK).ended);
}
END_TEST

START_TEST(the_reason_is_told_with_the_address)
{
    uint64_t a = ping();
    sent();
    ck_assert(!say("LIMIT clients\n"));
    expect_answer(a, REDLOCK_LIMIT);
    ck_assert_str_eq(talk.error, "tcp://there:1: a limit of the daemon is met: clients");
    talk_begin(&talk);
    a = ping();
    sent();
    ck_assert(!say("HELLO\n"));
    expect_answer(a, REDLOCK_GARBLED);
    ck_assert_str_eq(talk.error,
                     "tcp://there:1: what answers there does not speak redlockd's protocol");
    talk_begin(&talk);
    a = ping();
    now_ns += TIMEOUT;
    talk_expire(&talk, now_ns);
    expect_answer(a, REDLOCK_TIMEOUT);
    ck_assert_str_eq(talk.error, "tcp://there:1 did not answer in time");
}
END_TEST

START_TEST(an_answer_comes_once)
{
    uint64_t a = ping();
    sent();
    const char *line = text("#%" PRIu64 " PONG\n", a);
    ck_assert(say(line));
    ck_assert(!say(line));
    expect_answer(a, REDLOCK_OK);
    expect_kind(REDLOCK_EVENT_CLOSED);
}
END_TEST

START_TEST(what_was_not_sent_is_not_answered)
{
    uint64_t a = ping();
    ck_assert(!say(text("#%" PRIu64 " PONG\n", a)));
    expect_answer(a, REDLOCK_GARBLED);
}
END_TEST

START_TEST(a_line_has_a_longest_length)
{
    char line[LIMIT_REPLY + 1] = "! ";
    memset(line + 2, 'x', LIMIT_REPLY - 3);
    line[LIMIT_REPLY - 1] = '\n';
    ck_assert(talk_receive(&talk, line, LIMIT_REPLY, now_ns, now_ns));
    line[LIMIT_REPLY - 1] = 'x';
    ck_assert(!talk_receive(&talk, line, LIMIT_REPLY, now_ns, now_ns));
    talk_begin(&talk);
    for (unsigned i = 0; i < LIMIT_REPLY - 1; i++)
        ck_assert(talk_receive(&talk, "!", 1, now_ns, now_ns));
    ck_assert(!talk_receive(&talk, "!", 1, now_ns, now_ns));
}
END_TEST

/* All that can come, in one stream, cut into two or three pieces at every byte. */
static const char stream[] =
    "#name OK\n! NEWS x\n#1024 OK " TOKEN " 9000 0 77\n! WARN a " TOKEN " n1:timeout\n"
    "#3074 HELD 500\n! LOST a " TOKEN " noquorum\n#2049 PONG\n#4099 resource=b place=4\n"
    "#4099 END\n";

static void check_stream(size_t first, size_t second)
{
    struct question question;
    begin();
    talk_set_label(&talk, "me", true);
    acquire("a", (struct redlock_wish){.hold = true, .fence = true});
    ping();
    ck_assert(question_about(&question, QUESTION_QUERY, "a", &error));
    ask(&question);
    ck_assert(question_about(&question, QUESTION_PLACE, "b", &error));
    ask(&question);
    sent();
    size_t len = strlen(stream);
    ck_assert(talk_receive(&talk, stream, first, now_ns, now_ns));
    ck_assert(talk_receive(&talk, stream + first, second - first, now_ns, now_ns));
    ck_assert(talk_receive(&talk, stream + second, len - second, now_ns, now_ns));
    ck_assert_int_eq(expect_answer(1024, REDLOCK_OK).lock.fence, 77);
    struct redlock_event event = next_event();
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.lock.token, TOKEN);
    ck_assert_str_eq(event.lock.resource, "a");
    ck_assert_str_eq(event.reason, "noquorum");
    ck_assert_int_eq(expect_answer(3074, REDLOCK_HELD).hint_ms, 500);
    expect_answer(2049, REDLOCK_OK);
    ck_assert_uint_eq(expect_answer(4099, REDLOCK_OK).place, 4);
    expect_none();
    end();
}

START_TEST(a_stream_means_the_same_however_it_is_cut)
{
    end();
    for (size_t first = 0; first < sizeof(stream); first++)
        for (size_t second = first; second < sizeof(stream); second++)
            check_stream(first, second);
    begin();
}
END_TEST

/* --- out of time --- */

START_TEST(a_request_has_its_wait_and_the_timeout)
{
    ck_assert_int_eq(talk_until_ns(&talk), INT64_MAX);
    uint64_t a = acquire("a", (struct redlock_wish){.wait_ms = 60000});
    ck_assert_int_eq(talk_until_ns(&talk), 1000 * MS + 60000 * MS + TIMEOUT);
    uint64_t b = ping();
    ck_assert_int_eq(talk_until_ns(&talk), 1000 * MS + TIMEOUT);
    sent();
    now_ns += TIMEOUT - 1;
    talk_expire(&talk, now_ns);
    expect_none();
    now_ns++;
    talk_expire(&talk, now_ns);
    expect_answer(b, REDLOCK_TIMEOUT);
    ck_assert(!talk_is_spent(&talk));
    now_ns += 60000 * MS;
    ck_assert_int_eq(talk_until_ns(&talk), now_ns);
    talk_expire(&talk, now_ns);
    expect_answer(a, REDLOCK_TIMEOUT);
    ck_assert_int_eq(talk_until_ns(&talk), INT64_MAX);
    ck_assert(talk_is_spent(&talk));
    talk_end(&talk, REDLOCK_BROKEN, "closed", false);
    expect_none();
    ck_assert(!talk_is_spent(&talk));
}
END_TEST

static void time_out(int64_t after_ns)
{
    uint64_t id = ping();
    sent();
    now_ns += after_ns;
    talk_expire(&talk, now_ns);
    expect_answer(id, REDLOCK_TIMEOUT);
}

/* One that holds nothing is closed in order, which undoes what may have been granted. */
START_TEST(a_connection_that_is_silent_for_longer_than_its_holds_can_live_is_dead)
{
    time_out(20000 * MS);
    ck_assert(!talk_is_dead(&talk, now_ns));
    granted("a", TOKEN, true); /* for 10 s */
    /* Nothing was to be said. */
    now_ns += 60000 * MS;
    ck_assert(!talk_is_dead(&talk, now_ns));
    int64_t asked_ns = now_ns;
    time_out(TIMEOUT);
    time_out(TIMEOUT);
    ck_assert(!talk_is_dead(&talk, asked_ns + 10000 * MS - 1));
    ck_assert(talk_is_dead(&talk, asked_ns + 10000 * MS));
    ck_assert(say("! WARN a " TOKEN " n1:timeout\n"));
    expect_kind(REDLOCK_EVENT_WARN);
    ck_assert(!talk_is_dead(&talk, asked_ns + 60000 * MS));
    time_out(TIMEOUT);
    ck_assert(talk_is_dead(&talk, now_ns + 10000 * MS));
    talk_end(&talk, REDLOCK_BROKEN, "silent", true);
    expect_kind(REDLOCK_EVENT_CLOSED);
    talk_begin(&talk);
    ck_assert(!talk_is_dead(&talk, now_ns + 10000 * MS));
}
END_TEST

START_TEST(what_was_not_sent_in_time_is_not_sent)
{
    uint64_t a = acquire("a", (struct redlock_wish){0});
    now_ns += TIMEOUT;
    talk_expire(&talk, now_ns);
    expect_sent("");
    expect_answer(a, REDLOCK_TIMEOUT);
    ck_assert(!talk_is_spent(&talk));
}
END_TEST

/* The caller is told of the time-out before or after the grant arrives. */
START_TEST(a_grant_after_its_time_is_given_back)
{
    uint64_t held = granted("h", OTHER, true);
    uint64_t a = acquire("a", (struct redlock_wish){.hold = _i / 2 != 0});
    sent();
    now_ns += TIMEOUT;
    talk_expire(&talk, now_ns);
    if (_i % 2 == 0)
        expect_answer(a, REDLOCK_TIMEOUT);
    ck_assert(!talk_is_spent(&talk));
    ck_assert(say(text("#%" PRIu64 " OK " TOKEN " 9000 0 -\n", a)));
    if (_i % 2 != 0)
        expect_answer(a, REDLOCK_TIMEOUT);
    ck_assert_uint_eq(talk.holds.count, 1);
    uint64_t back = 3 * LIMIT_CLIENT_REQUESTS + a % LIMIT_CLIENT_REQUESTS;
    ck_assert_uint_ne(held, a);
    expect_sent(text("#%" PRIu64 " UNLOCK a " TOKEN "\n", back));
    ck_assert(say(text("#%" PRIu64 " OK\n", back)));
    expect_none();
    ck_assert_uint_eq(talk.living, 0);
    ck_assert_uint_eq(talk.abandoned, 0);
}
END_TEST

START_TEST(other_answers_after_their_time_do_not_matter)
{
    granted("h", OTHER, true);
    static const char *const late[] = {"HELD 5", "ERR x y", "LATE 5", "SHUTDOWN",
                                       "OK " TOKEN " 9000 0 -"};
    for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
        uint64_t a = acquire("a", (struct redlock_wish){0});
        sent();
        now_ns += TIMEOUT;
        talk_expire(&talk, now_ns);
        ck_assert(say(text("#%" PRIu64 " %s\n", a, late[i])));
        expect_answer(a, REDLOCK_TIMEOUT);
        ck_assert_uint_eq(talk.abandoned, 0);
        expect_none();
    }
}
END_TEST

START_TEST(a_release_of_our_own_is_given_up_in_time)
{
    granted("h", OTHER, true);
    uint64_t a = acquire("a", (struct redlock_wish){0});
    sent();
    talk_cancel(&talk, a, now_ns);
    ck_assert(say(text("#%" PRIu64 " OK " TOKEN " 9000 0 -\n", a)));
    sent();
    ck_assert_int_eq(talk_until_ns(&talk), now_ns + TIMEOUT);
    now_ns += TIMEOUT;
    talk_expire(&talk, now_ns);
    expect_none();
    ck_assert_uint_eq(talk.abandoned, 1);
    ck_assert_uint_eq(talk.living, 0);
}
END_TEST

/* --- given up --- */

START_TEST(what_is_cancelled_has_no_answer)
{
    uint64_t a = acquire("a", (struct redlock_wish){0});
    talk_cancel(&talk, a, now_ns);
    expect_sent("");
    ck_assert(!talk_is_spent(&talk));
    uint64_t b = acquire("b", (struct redlock_wish){.wait_ms = 60000});
    sent();
    talk_cancel(&talk, b, now_ns);
    talk_cancel(&talk, b, now_ns);
    talk_cancel(&talk, 0, now_ns);
    talk_cancel(&talk, UINT64_MAX, now_ns);
    ck_assert(talk_is_spent(&talk));
    now_ns += 65000 * MS;
    talk_expire(&talk, now_ns);
    expect_none();
}
END_TEST

START_TEST(a_grant_that_nobody_took_is_given_back_by_cancel)
{
    uint64_t a = acquire("a", (struct redlock_wish){.hold = true});
    uint64_t b = ping();
    sent();
    ck_assert(say(text("#%" PRIu64 " OK " TOKEN " 9000 0 -\n#%" PRIu64 " PONG\n", a, b)));
    talk_cancel_all(&talk, now_ns);
    expect_none();
    ck_assert_uint_eq(talk.holds.count, 0);
    ck_assert_ptr_nonnull(strstr(sent(), " UNLOCK a " TOKEN "\n"));
}
END_TEST

START_TEST(what_the_caller_holds_is_not_given_back_by_cancel)
{
    uint64_t a = granted("a", TOKEN, true);
    talk_cancel(&talk, a, now_ns);
    talk_cancel_all(&talk, now_ns);
    expect_sent("");
    ck_assert_uint_eq(talk.holds.count, 1);
}
END_TEST

START_TEST(a_grant_of_which_nothing_is_left_is_given_back)
{
    uint64_t a = acquire("a", (struct redlock_wish){.hold = true});
    sent();
    now_ns += 4000 * MS;
    ck_assert(say(text("#%" PRIu64 " OK " TOKEN " 3000 0 -\n", a)));
    struct redlock_event event = expect_answer(a, REDLOCK_LATE);
    ck_assert_str_eq(event.lock.token, "");
    ck_assert_int_eq(event.lock.deadline_ns, 0);
    ck_assert_uint_eq(talk.holds.count, 0);
    ck_assert_ptr_nonnull(strstr(sent(), " UNLOCK a " TOKEN "\n"));
    expect_none();
}
END_TEST

START_TEST(an_extension_of_which_nothing_is_left_releases_nothing)
{
    struct question question;
    struct redlock_lock lock = {.resource = "a", .token = TOKEN, .deadline_ns = 90000 * MS};
    ck_assert(question_extend(&question, &lock, 5000, &error));
    uint64_t a = ask(&question);
    sent();
    now_ns += 4000 * MS;
    ck_assert(say(text("#%" PRIu64 " OK " TOKEN " 3000 0\n", a)));
    expect_answer(a, REDLOCK_LATE);
    expect_sent("");
}
END_TEST

/* --- holds --- */

START_TEST(a_loss_is_told_once_and_before_what_came_after_it)
{
    granted("a", TOKEN, true);
    uint64_t b = ping();
    sent();
    ck_assert(say("! LOST a " TOKEN " noquorum\n! LOST a " TOKEN " gone\n"));
    ck_assert(say(text("#%" PRIu64 " PONG\n", b)));
    struct redlock_event event = next_event();
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.reason, "noquorum");
    ck_assert_str_eq(event.lock.token, TOKEN);
    expect_answer(b, REDLOCK_OK);
    ck_assert(say("! LOST a " TOKEN " noquorum\n"));
    expect_none();
}
END_TEST

START_TEST(what_was_released_is_no_news_any_more)
{
    struct question question;
    ck_assert(question_release(&question, "a", TOKEN, &error));
    granted("a", TOKEN, true);
    granted("b", OTHER, true);
    ck_assert(say("! LOST a " TOKEN " noquorum\n! LOST b " OTHER " noquorum\n"));
    ask(&question);
    struct redlock_event event = next_event();
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.lock.token, OTHER);
    expect_none();
}
END_TEST

START_TEST(a_loss_takes_the_place_of_a_warning)
{
    granted("a", TOKEN, true);
    ck_assert(say("! WARN a " TOKEN " n1:timeout\n! WARN a " TOKEN " n2:timeout\n"));
    struct redlock_event event = next_event();
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_WARN);
    ck_assert_str_eq(event.reason, "n2:timeout");
    expect_none();
    ck_assert(say("! WARN a " TOKEN " n3:timeout\n! LOST a " TOKEN " noquorum\n"));
    ck_assert(say("! WARN a " TOKEN " n4:timeout\n"));
    expect_kind(REDLOCK_EVENT_LOST);
    expect_none();
}
END_TEST

START_TEST(what_is_said_of_others_does_not_matter)
{
    granted("a", TOKEN, true);
    granted("b", "2123456789abcdef0123456789abcdef01234567", false);
    ck_assert(say("! LOST a " OTHER " gone\n! WARN a " OTHER " x:y\n"));
    ck_assert(say("! LOST b 2123456789abcdef0123456789abcdef01234567 gone\n"));
    expect_none();
    ck_assert_uint_eq(talk.holds.count, 1);
}
END_TEST

START_TEST(nothing_is_told_of_a_lock_whose_release_was_asked_for)
{
    struct question question;
    granted("a", TOKEN, true);
    ck_assert(say("! WARN a " TOKEN " n1:timeout\n"));
    ck_assert(question_release(&question, "a", TOKEN, &error));
    ask(&question);
    ck_assert(say("! LOST a " TOKEN " gone\n"));
    expect_none();
}
END_TEST

START_TEST(a_long_reason_is_cut)
{
    char line[256];
    granted("a", TOKEN, true);
    snprintf(line, sizeof(line), "! WARN a " TOKEN " %0100d\n", 1);
    ck_assert(say(line));
    ck_assert_uint_eq(strlen(next_event().reason), 63);
}
END_TEST

START_TEST(a_flood_of_warnings_takes_no_memory)
{
    granted("a", TOKEN, true);
    granted("b", OTHER, true);
    for (unsigned i = 0; i < 10000; i++)
        ck_assert(say("! WARN a " TOKEN " n1:timeout\n! WARN b " OTHER " n1:timeout\n"));
    expect_kind(REDLOCK_EVENT_WARN);
    expect_kind(REDLOCK_EVENT_WARN);
    expect_none();
}
END_TEST

/* --- the end of a connection --- */

START_TEST(the_end_answers_what_is_under_way)
{
    granted("a", TOKEN, true);
    granted("b", OTHER, true);
    uint64_t c = ping();
    sent();
    uint64_t d = ping();
    ck_assert(say("! LOST a " TOKEN " noquorum\n! WARN b " OTHER " n1:timeout\n"));
    talk_end(&talk, REDLOCK_BROKEN, "it ended", true);
    expect_kind(REDLOCK_EVENT_LOST);
    expect_answer(c, REDLOCK_BROKEN);
    ck_assert_str_eq(talk.error, "tcp://there:1: it ended");
    expect_answer(d, REDLOCK_BROKEN);
    expect_kind(REDLOCK_EVENT_CLOSED);
    expect_none();
    ck_assert_uint_eq(talk.holds.count, 0);
    expect_sent("");
}
END_TEST

START_TEST(half_a_line_is_forgotten_with_its_connection)
{
    uint64_t a = ping();
    sent();
    ck_assert(say(text("#%" PRIu64 " PON", a)));
    talk_end(&talk, REDLOCK_BROKEN, "it ended", true);
    expect_answer(a, REDLOCK_BROKEN);
    expect_kind(REDLOCK_EVENT_CLOSED);
    talk_begin(&talk);
    a = ping();
    sent();
    ck_assert(say(text("#%" PRIu64 " PONG\n", a)));
    expect_answer(a, REDLOCK_OK);
}
END_TEST

START_TEST(an_end_that_cost_nothing_is_forgotten_with_a_new_connection)
{
    talk_end(&talk, REDLOCK_BROKEN, "it ended", true);
    talk_begin(&talk);
    expect_none();
    granted("a", TOKEN, true);
    talk_end(&talk, REDLOCK_BROKEN, "it ended", true);
    talk_begin(&talk);
    talk_end(&talk, REDLOCK_BROKEN, "it ended", true);
    talk_begin(&talk);
    expect_kind(REDLOCK_EVENT_CLOSED);
    expect_none();
}
END_TEST

START_TEST(what_nobody_took_is_freed)
{
    granted("a", TOKEN, true);
    granted("b", OTHER, true);
    acquire("c", (struct redlock_wish){.hold = true});
    sent();
    ping();
    ck_assert(say("! LOST a " TOKEN " noquorum\n! WARN b " OTHER " n1:timeout\n"));
}
END_TEST

/* --- the secret --- */

START_TEST(secret_is_told_first_on_each_connection)
{
    talk_set_secret(&talk, "s3cret");
    talk_set_label(&talk, "me", true);
    talk_begin(&talk);
    ck_assert(talk_has_output(&talk));
    uint64_t a = ping();
    expect_sent(text("#auth AUTH s3cret\n#name NAME me\n#%" PRIu64 " PING\n", a));
    ck_assert(say(text("#auth OK\n#name OK\n#%" PRIu64 " PONG\n", a)));
    expect_answer(a, REDLOCK_OK);
    ck_assert(!talk_has_output(&talk));
    ck_assert(!say("#auth OK\n")); /* it was answered */
    expect_kind(REDLOCK_EVENT_CLOSED);
    talk_begin(&talk);
    expect_sent("#auth AUTH s3cret\n#name NAME me\n");
    talk_set_secret(&talk, NULL);
    talk_begin(&talk);
    expect_sent("#name NAME me\n");
}
END_TEST

START_TEST(nothing_overtakes_the_secret)
{
    char buf[QUESTION_LINE];
    talk_set_secret(&talk, "s3cret");
    talk_begin(&talk);
    ping();
    ck_assert_uint_eq(talk_write(&talk, now_ns, buf, sizeof(buf) - 1), 0);
    size_t len = talk_write(&talk, now_ns, buf, sizeof(buf));
    ck_assert_uint_eq(len, strlen("#auth AUTH s3cret\n"));
}
END_TEST

/* What is answered to a secret that is not taken, and what then becomes of all requests. */
static const struct {
    const char *answer;
    enum redlock_status status;
} refusals[] = {
    {"#auth DENIED wrong secret\n", REDLOCK_DENIED},
    {"DENIED not authenticated in time\n", REDLOCK_DENIED},
    {"#auth LIMIT secrets\n", REDLOCK_LIMIT},
    {"#auth SHUTDOWN\n", REDLOCK_SHUTDOWN},
    {"#auth ERR bad-arguments not available yet: AUTH\n", REDLOCK_REFUSED},
    {"#auth HELD 5\n", REDLOCK_GARBLED},
    {"#auth\n", REDLOCK_GARBLED},
};

START_TEST(secret_that_is_not_taken_ends_all_requests)
{
    talk_set_secret(&talk, "s3cret");
    talk_begin(&talk);
    uint64_t a = ping();
    uint64_t b = acquire("a", (struct redlock_wish){0});
    sent();
    ck_assert(!say(refusals[_i].answer));
    expect_answer(a, refusals[_i].status);
    expect_answer(b, refusals[_i].status);
    expect_kind(REDLOCK_EVENT_CLOSED);
    ck_assert_ptr_null(strstr(talk.error, "s3cret"));
}
END_TEST

/* An answer to what was not asked. */
START_TEST(without_a_secret_there_is_no_answer_to_one)
{
    ping();
    sent();
    ck_assert(!say("#auth DENIED wrong secret\n"));
    ck_assert_int_eq(next_event().status, REDLOCK_GARBLED);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("client_talk");
    TCase *cases = tcase_create("client_talk");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, requests_are_sent_in_order_and_answered_in_any);
    tcase_add_test(cases, a_request_is_sent_when_it_is_written_not_when_it_is_asked);
    tcase_add_test(cases, a_connection_is_named_first_and_again_when_it_is_new);
    tcase_add_test(cases, the_lines_of_a_listing_are_passed_on);
    tcase_add_test(cases, a_place_is_told_at_the_end_of_the_listing);
    tcase_add_test(cases, there_is_a_bound_on_requests_until_they_are_taken);
    tcase_add_test(cases, the_reason_is_told_with_the_address);
    tcase_add_test(cases, a_farewell_is_told_from_an_answer);
    tcase_add_test(cases, an_answer_comes_once);
    tcase_add_test(cases, what_was_not_sent_is_not_answered);
    tcase_add_test(cases, a_line_has_a_longest_length);
    tcase_add_test(cases, a_stream_means_the_same_however_it_is_cut);
    tcase_add_test(cases, a_request_has_its_wait_and_the_timeout);
    tcase_add_test(cases, a_connection_that_is_silent_for_longer_than_its_holds_can_live_is_dead);
    tcase_add_test(cases, what_was_not_sent_in_time_is_not_sent);
    tcase_add_test(cases, other_answers_after_their_time_do_not_matter);
    tcase_add_test(cases, a_release_of_our_own_is_given_up_in_time);
    tcase_add_test(cases, what_is_cancelled_has_no_answer);
    tcase_add_test(cases, a_grant_that_nobody_took_is_given_back_by_cancel);
    tcase_add_test(cases, what_the_caller_holds_is_not_given_back_by_cancel);
    tcase_add_test(cases, a_grant_of_which_nothing_is_left_is_given_back);
    tcase_add_test(cases, an_extension_of_which_nothing_is_left_releases_nothing);
    tcase_add_test(cases, a_loss_is_told_once_and_before_what_came_after_it);
    tcase_add_test(cases, what_was_released_is_no_news_any_more);
    tcase_add_test(cases, a_loss_takes_the_place_of_a_warning);
    tcase_add_test(cases, what_is_said_of_others_does_not_matter);
    tcase_add_test(cases, nothing_is_told_of_a_lock_whose_release_was_asked_for);
    tcase_add_test(cases, a_long_reason_is_cut);
    tcase_add_test(cases, a_flood_of_warnings_takes_no_memory);
    tcase_add_test(cases, the_end_answers_what_is_under_way);
    tcase_add_test(cases, half_a_line_is_forgotten_with_its_connection);
    tcase_add_test(cases, an_end_that_cost_nothing_is_forgotten_with_a_new_connection);
    tcase_add_test(cases, what_nobody_took_is_freed);
    tcase_add_loop_test(cases, what_answers_nothing_ends_the_connection, 0,
                        sizeof(foreign) / sizeof(foreign[0]));
    tcase_add_loop_test(cases, a_grant_after_its_time_is_given_back, 0, 4);
    tcase_add_test(cases, secret_is_told_first_on_each_connection);
    tcase_add_test(cases, nothing_overtakes_the_secret);
    tcase_add_loop_test(cases, secret_that_is_not_taken_ends_all_requests, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(cases, without_a_secret_there_is_no_answer_to_one);
    suite_add_tcase(suite, cases);
    return suite;
}
