/*
 * client/c/talk.h: requests under way, what answers them, and how a connection begins and ends.
 * Time is a number here, and the daemon is what the test says.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/runner.h"
#include "tests/unit/talker.h"

static struct talker t;

static void begin(void)
{
    talker_begin(&t);
}

static void end(void)
{
    talker_end(&t);
}

/* --- asking and answering --- */

START_TEST(requests_are_sent_in_order_and_answered_in_any)
{
    uint64_t a = talker_acquire(&t, "a", (struct redlock_lock_options){.wait_ms = 60000});
    uint64_t b = talker_ping(&t);
    ck_assert(talk_has_output(&t.talk));
    talker_expect_sent(&t, "#%" PRIu64 " LOCK a 10000 WAIT 60000\n#%" PRIu64 " PING\n", a, b);
    ck_assert(!talk_has_output(&t.talk));
    talker_expect_none(&t);
    ck_assert(talker_hear(&t, "#%" PRIu64 " PONG\n", b));
    talker_expect_answer(&t, b, REDLOCK_OK);
    t.now_ns += 300 * MS;
    ck_assert(talker_hear(&t, "#%" PRIu64 " OK " TOKEN " 9000 100 -\n", a));
    struct redlock_event event = talker_expect_answer(&t, a, REDLOCK_OK);
    ck_assert_int_eq(event.sent_ns, 1000 * MS);
    ck_assert_int_eq(event.lock.deadline_ns, 10100 * MS);
    talker_expect_none(&t);
}
END_TEST

START_TEST(a_request_is_sent_when_it_is_written_not_when_it_is_asked)
{
    char buf[QUESTION_LINE];
    uint64_t a = talker_acquire(&t, "a", (struct redlock_lock_options){0});
    uint64_t b = talker_acquire(&t, "b", (struct redlock_lock_options){0});
    t.now_ns += 10 * MS;
    ck_assert_uint_eq(talk_write(&t.talk, t.now_ns, buf, sizeof(buf) - 1), 0);
    ck_assert_uint_gt(talk_write(&t.talk, t.now_ns, buf, sizeof(buf)), 0);
    t.now_ns += 10 * MS;
    talker_sent(&t);
    t.now_ns += 10 * MS;
    ck_assert(talker_hear(&t, "#%" PRIu64 " OK " TOKEN " 10000 0 -\n", b));
    ck_assert_int_eq(talker_expect_answer(&t, b, REDLOCK_OK).lock.deadline_ns, 11020 * MS);
    ck_assert(talker_hear(&t, "#%" PRIu64 " OK " OTHER " 10000 0 -\n", a));
    ck_assert_int_eq(talker_expect_answer(&t, a, REDLOCK_OK).lock.deadline_ns, 11010 * MS);
}
END_TEST

START_TEST(a_connection_is_named_first_and_again_when_it_is_new)
{
    talk_set_label(&t.talk, "me", true);
    uint64_t a = talker_ping(&t);
    talker_expect_sent(&t, "#name NAME me\n#%" PRIu64 " PING\n", a);
    talk_set_label(&t.talk, "you", true);
    ck_assert_str_eq(talker_sent(&t), "");
    ck_assert(talker_hear(&t, "#name ERR bad-arguments no\n"));
    talker_expect_sent(&t, "#name NAME you\n");
    ck_assert(talker_hear(&t, "#name OK\n"));
    ck_assert_str_eq(talker_sent(&t), "");
    talk_end(&t.talk, REDLOCK_BROKEN, "gone", true);
    talk_begin(&t.talk);
    talker_expect_sent(&t, "#name NAME you\n");
    ck_assert(talker_hear(&t, "#name OK\n"));
    ck_assert(!talker_hear(&t, "#name OK\n"));
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
    ck_assert(question_list(&question, "NODES", &t.error));
    ck_assert_int_eq(talk_ask(&t.talk, &question, t.now_ns, note_line, lines, &a), REDLOCK_OK);
    ck_assert(question_list(&question, "VERSION", &t.error));
    ck_assert_int_eq(talk_ask(&t.talk, &question, t.now_ns, note_line, lines, &b), REDLOCK_OK);
    talker_sent(&t);
    ck_assert(talker_hear(&t,
                          "#%" PRIu64 " node=a\n#%" PRIu64 " VERSION 1 x\n#%" PRIu64
                          " node=b\n#%" PRIu64 " END\n",
                          a, b, a, a));
    ck_assert_str_eq(lines, "node=a|VERSION 1 x|node=b|");
    ck_assert(talk_take_answer(&t.talk, a, &event));
    ck_assert_int_eq(event.status, REDLOCK_OK);
    ck_assert(!talk_take_answer(&t.talk, a, &event));
    talker_expect_answer(&t, b, REDLOCK_OK);
}
END_TEST

START_TEST(a_place_is_told_at_the_end_of_the_listing)
{
    struct question question;
    ck_assert(question_about(&question, QUESTION_PLACE, "a", &t.error));
    uint64_t a = talker_ask(&t, &question);
    talker_expect_sent(&t, "#%" PRIu64 " LOCKS a\n", a);
    ck_assert(talker_hear(&t, "#%" PRIu64 " resource=a token=- place=2 waiters=5\n", a));
    talker_expect_none(&t);
    ck_assert(talker_hear(&t, "#%" PRIu64 " END\n", a));
    ck_assert_uint_eq(talker_expect_answer(&t, a, REDLOCK_OK).place, 2);
    uint64_t b = talker_ask(&t, &question);
    talker_sent(&t);
    ck_assert(talker_hear(&t, "#%" PRIu64 " END\n", b));
    ck_assert_uint_eq(talker_expect_answer(&t, b, REDLOCK_OK).place, 0);
}
END_TEST

START_TEST(there_is_a_bound_on_requests_until_they_are_taken)
{
    uint64_t first = talker_ping(&t);
    uint64_t id;
    for (unsigned i = 1; i < LIMIT_CLIENT_REQUESTS; i++)
        talker_ping(&t);
    const struct question one_more = {.kind = QUESTION_PING};
    while (talk_has_output(&t.talk))
        talker_sent(&t);
    ck_assert_int_eq(talk_ask(&t.talk, &one_more, t.now_ns, NULL, NULL, &id), REDLOCK_LIMIT);
    ck_assert_str_eq(t.talk.error, "1024 requests are under way, or not taken yet");
    ck_assert(talker_hear(&t, "#%" PRIu64 " PONG\n", first));
    ck_assert_int_eq(talk_ask(&t.talk, &one_more, t.now_ns, NULL, NULL, &id), REDLOCK_LIMIT);
    talker_expect_answer(&t, first, REDLOCK_OK);
    ck_assert_int_eq(talk_ask(&t.talk, &one_more, t.now_ns, NULL, NULL, &id), REDLOCK_OK);
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
    uint64_t a = talker_acquire(&t, "a", (struct redlock_lock_options){0});
    uint64_t b = talker_ping(&t);
    ck_assert_uint_eq(a, 1024);
    ck_assert_uint_eq(b, 2049);
    talker_sent(&t);
    ck_assert(!talker_hear(&t, "%s", foreign[_i].bytes));
    ck_assert(talker_expect_answer(&t, a, foreign[_i].status).ended);
    ck_assert(talker_expect_answer(&t, b, foreign[_i].status).ended);
    talker_expect(&t, REDLOCK_EVENT_CLOSED);
    talker_expect_none(&t);
    ck_assert_uint_eq(t.talk.living, 0);
    ck_assert_uint_eq(t.talk.abandoned, 0);
}
END_TEST

/* Also if another connection has been made before it is taken. */
START_TEST(a_farewell_is_told_from_an_answer)
{
    uint64_t a = talker_ping(&t);
    uint64_t b = talker_ping(&t);
    talker_sent(&t);
    ck_assert(talker_hear(&t, "#%" PRIu64 " LIMIT requests\n", a));
    ck_assert(!talker_hear(&t, "LIMIT clients\n"));
    talk_begin(&t.talk);
    ck_assert(!talker_expect_answer(&t, a, REDLOCK_LIMIT).ended);
    ck_assert(talker_expect_answer(&t, b, REDLOCK_LIMIT).ended);
    uint64_t c = talker_ping(&t);
    talker_sent(&t);
    ck_assert(talker_hear(&t, "#%" PRIu64 " PONG\n", c));
    ck_assert(!talker_expect_answer(&t, c, REDLOCK_OK).ended);
}
END_TEST

START_TEST(the_reason_is_told_with_the_address)
{
    uint64_t a = talker_ping(&t);
    talker_sent(&t);
    ck_assert(!talker_hear(&t, "LIMIT clients\n"));
    talker_expect_answer(&t, a, REDLOCK_LIMIT);
    ck_assert_str_eq(t.talk.error, "tcp://there:1: a limit of the daemon is met: clients");
    talk_begin(&t.talk);
    a = talker_ping(&t);
    talker_sent(&t);
    ck_assert(!talker_hear(&t, "HELLO\n"));
    talker_expect_answer(&t, a, REDLOCK_GARBLED);
    ck_assert_str_eq(t.talk.error,
                     "tcp://there:1: what answers there does not speak redlockd's protocol");
    talk_begin(&t.talk);
    a = talker_ping(&t);
    t.now_ns += TIMEOUT;
    talk_expire(&t.talk, t.now_ns);
    talker_expect_answer(&t, a, REDLOCK_TIMEOUT);
    ck_assert_str_eq(t.talk.error, "tcp://there:1 did not answer in time");
}
END_TEST

START_TEST(an_answer_comes_once)
{
    uint64_t a = talker_ping(&t);
    talker_sent(&t);
    ck_assert(talker_hear(&t, "#%" PRIu64 " PONG\n", a));
    ck_assert(!talker_hear(&t, "#%" PRIu64 " PONG\n", a));
    talker_expect_answer(&t, a, REDLOCK_OK);
    talker_expect(&t, REDLOCK_EVENT_CLOSED);
}
END_TEST

START_TEST(what_was_not_sent_is_not_answered)
{
    uint64_t a = talker_ping(&t);
    ck_assert(!talker_hear(&t, "#%" PRIu64 " PONG\n", a));
    talker_expect_answer(&t, a, REDLOCK_GARBLED);
}
END_TEST

START_TEST(a_line_has_a_longest_length)
{
    char line[LIMIT_REPLY + 1] = "! ";
    memset(line + 2, 'x', LIMIT_REPLY - 3);
    line[LIMIT_REPLY - 1] = '\n';
    ck_assert(talk_receive(&t.talk, line, LIMIT_REPLY, t.now_ns, t.now_ns));
    line[LIMIT_REPLY - 1] = 'x';
    ck_assert(!talk_receive(&t.talk, line, LIMIT_REPLY, t.now_ns, t.now_ns));
    talk_begin(&t.talk);
    for (unsigned i = 0; i < LIMIT_REPLY - 1; i++)
        ck_assert(talk_receive(&t.talk, "!", 1, t.now_ns, t.now_ns));
    ck_assert(!talk_receive(&t.talk, "!", 1, t.now_ns, t.now_ns));
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
    talk_set_label(&t.talk, "me", true);
    talker_acquire(&t, "a", (struct redlock_lock_options){.hold = true, .fence = true});
    talker_ping(&t);
    ck_assert(question_about(&question, QUESTION_QUERY, "a", &t.error));
    talker_ask(&t, &question);
    ck_assert(question_about(&question, QUESTION_PLACE, "b", &t.error));
    talker_ask(&t, &question);
    talker_sent(&t);
    size_t len = strlen(stream);
    ck_assert(talk_receive(&t.talk, stream, first, t.now_ns, t.now_ns));
    ck_assert(talk_receive(&t.talk, stream + first, second - first, t.now_ns, t.now_ns));
    ck_assert(talk_receive(&t.talk, stream + second, len - second, t.now_ns, t.now_ns));
    ck_assert_int_eq(talker_expect_answer(&t, 1024, REDLOCK_OK).lock.fence, 77);
    struct redlock_event event = talker_next(&t);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.lock.token, TOKEN);
    ck_assert_str_eq(event.lock.resource, "a");
    ck_assert_str_eq(event.reason, "noquorum");
    ck_assert_int_eq(talker_expect_answer(&t, 3074, REDLOCK_HELD).hint_ms, 500);
    talker_expect_answer(&t, 2049, REDLOCK_OK);
    ck_assert_uint_eq(talker_expect_answer(&t, 4099, REDLOCK_OK).place, 4);
    talker_expect_none(&t);
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

/* --- the end of a connection --- */

START_TEST(the_end_answers_what_is_under_way)
{
    talker_granted(&t, "a", TOKEN, true);
    talker_granted(&t, "b", OTHER, true);
    uint64_t c = talker_ping(&t);
    talker_sent(&t);
    uint64_t d = talker_ping(&t);
    ck_assert(talker_hear(&t, "! LOST a " TOKEN " noquorum\n! WARN b " OTHER " n1:timeout\n"));
    talk_end(&t.talk, REDLOCK_BROKEN, "it ended", true);
    talker_expect(&t, REDLOCK_EVENT_LOST);
    talker_expect_answer(&t, c, REDLOCK_BROKEN);
    ck_assert_str_eq(t.talk.error, "tcp://there:1: it ended");
    talker_expect_answer(&t, d, REDLOCK_BROKEN);
    talker_expect(&t, REDLOCK_EVENT_CLOSED);
    talker_expect_none(&t);
    ck_assert_uint_eq(t.talk.holds.count, 0);
    ck_assert_str_eq(talker_sent(&t), "");
}
END_TEST

START_TEST(half_a_line_is_forgotten_with_its_connection)
{
    uint64_t a = talker_ping(&t);
    talker_sent(&t);
    ck_assert(talker_hear(&t, "#%" PRIu64 " PON", a));
    talk_end(&t.talk, REDLOCK_BROKEN, "it ended", true);
    talker_expect_answer(&t, a, REDLOCK_BROKEN);
    talker_expect(&t, REDLOCK_EVENT_CLOSED);
    talk_begin(&t.talk);
    a = talker_ping(&t);
    talker_sent(&t);
    ck_assert(talker_hear(&t, "#%" PRIu64 " PONG\n", a));
    talker_expect_answer(&t, a, REDLOCK_OK);
}
END_TEST

START_TEST(an_end_that_cost_nothing_is_forgotten_with_a_new_connection)
{
    talk_end(&t.talk, REDLOCK_BROKEN, "it ended", true);
    talk_begin(&t.talk);
    talker_expect_none(&t);
    talker_granted(&t, "a", TOKEN, true);
    talk_end(&t.talk, REDLOCK_BROKEN, "it ended", true);
    talk_begin(&t.talk);
    talk_end(&t.talk, REDLOCK_BROKEN, "it ended", true);
    talk_begin(&t.talk);
    talker_expect(&t, REDLOCK_EVENT_CLOSED);
    talker_expect_none(&t);
}
END_TEST

START_TEST(what_nobody_took_is_freed)
{
    talker_granted(&t, "a", TOKEN, true);
    talker_granted(&t, "b", OTHER, true);
    talker_acquire(&t, "c", (struct redlock_lock_options){.hold = true});
    talker_sent(&t);
    talker_ping(&t);
    ck_assert(talker_hear(&t, "! LOST a " TOKEN " noquorum\n! WARN b " OTHER " n1:timeout\n"));
}
END_TEST

/* --- the secret --- */

START_TEST(secret_is_told_first_on_each_connection)
{
    talk_set_secret(&t.talk, "s3cret");
    talk_set_label(&t.talk, "me", true);
    talk_begin(&t.talk);
    ck_assert(talk_has_output(&t.talk));
    uint64_t a = talker_ping(&t);
    talker_expect_sent(&t, "#auth AUTH s3cret\n#name NAME me\n#%" PRIu64 " PING\n", a);
    ck_assert(talker_hear(&t, "#auth OK\n#name OK\n#%" PRIu64 " PONG\n", a));
    talker_expect_answer(&t, a, REDLOCK_OK);
    ck_assert(!talk_has_output(&t.talk));
    ck_assert(!talker_hear(&t, "#auth OK\n")); /* it was answered */
    talker_expect(&t, REDLOCK_EVENT_CLOSED);
    talk_begin(&t.talk);
    talker_expect_sent(&t, "#auth AUTH s3cret\n#name NAME me\n");
    talk_set_secret(&t.talk, NULL);
    talk_begin(&t.talk);
    talker_expect_sent(&t, "#name NAME me\n");
}
END_TEST

START_TEST(nothing_overtakes_the_secret)
{
    char buf[QUESTION_LINE];
    talk_set_secret(&t.talk, "s3cret");
    talk_begin(&t.talk);
    talker_ping(&t);
    ck_assert_uint_eq(talk_write(&t.talk, t.now_ns, buf, sizeof(buf) - 1), 0);
    size_t len = talk_write(&t.talk, t.now_ns, buf, sizeof(buf));
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
    talk_set_secret(&t.talk, "s3cret");
    talk_begin(&t.talk);
    uint64_t a = talker_ping(&t);
    uint64_t b = talker_acquire(&t, "a", (struct redlock_lock_options){0});
    talker_sent(&t);
    ck_assert(!talker_hear(&t, "%s", refusals[_i].answer));
    talker_expect_answer(&t, a, refusals[_i].status);
    talker_expect_answer(&t, b, refusals[_i].status);
    talker_expect(&t, REDLOCK_EVENT_CLOSED);
    ck_assert_ptr_null(strstr(t.talk.error, "s3cret"));
}
END_TEST

/* An answer to what was not asked. */
START_TEST(without_a_secret_there_is_no_answer_to_one)
{
    talker_ping(&t);
    talker_sent(&t);
    ck_assert(!talker_hear(&t, "#auth DENIED wrong secret\n"));
    ck_assert_int_eq(talker_next(&t).status, REDLOCK_GARBLED);
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
    tcase_add_loop_test(cases, what_answers_nothing_ends_the_connection, 0,
                        sizeof(foreign) / sizeof(foreign[0]));
    tcase_add_test(cases, a_farewell_is_told_from_an_answer);
    tcase_add_test(cases, the_reason_is_told_with_the_address);
    tcase_add_test(cases, an_answer_comes_once);
    tcase_add_test(cases, what_was_not_sent_is_not_answered);
    tcase_add_test(cases, a_line_has_a_longest_length);
    tcase_add_test(cases, a_stream_means_the_same_however_it_is_cut);
    tcase_add_test(cases, the_end_answers_what_is_under_way);
    tcase_add_test(cases, half_a_line_is_forgotten_with_its_connection);
    tcase_add_test(cases, an_end_that_cost_nothing_is_forgotten_with_a_new_connection);
    tcase_add_test(cases, what_nobody_took_is_freed);
    tcase_add_test(cases, secret_is_told_first_on_each_connection);
    tcase_add_test(cases, nothing_overtakes_the_secret);
    tcase_add_loop_test(cases, secret_that_is_not_taken_ends_all_requests, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(cases, without_a_secret_there_is_no_answer_to_one);
    suite_add_tcase(suite, cases);
    return suite;
}
