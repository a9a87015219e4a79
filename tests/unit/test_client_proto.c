/*
 * client/c/client_proto.h: requests in flight, their answers, and how a connection begins and ends.
 * The tests set the clock and play the daemon.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/runner.h"
#include "tests/unit/client_driver.h"

static struct client_driver t;

static void begin(void)
{
    driver_begin(&t);
}

static void end(void)
{
    driver_end(&t);
}

const struct runner_settings runner_settings = {.setup = begin, .teardown = end};

/* --- requests and answers --- */

TEST(requests_are_sent_in_order_and_answered_in_any_order)
{
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){.wait_ms = 60000});
    uint64_t b = driver_ping(&t);
    ck_assert(proto_has_output(&t.proto));
    driver_expect_sent(&t, "#%" PRIu64 " LOCK a 10000 WAIT 60000\n#%" PRIu64 " PING\n", a, b);
    ck_assert(!proto_has_output(&t.proto));
    driver_expect_none(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " PONG\n", b));
    driver_expect_answer(&t, b, REDLOCK_OK);
    t.now_ns += 300 * MS;
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 9000 100 -\n", a));
    struct redlock_event event = driver_expect_answer(&t, a, REDLOCK_OK);
    ck_assert_int_eq(event.sent_ns, 1000 * MS);
    ck_assert_int_eq(event.lock.deadline_ns, 10100 * MS);
    driver_expect_none(&t);
}

TEST(deadline_counts_from_the_write_of_the_request)
{
    char buf[CLIENT_REQUEST_LINE];
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){0});
    uint64_t b = driver_acquire(&t, "b", (struct redlock_lock_options){0});
    t.now_ns += 10 * MS;
    ck_assert_uint_eq(proto_write(&t.proto, t.now_ns, buf, sizeof(buf) - 1), 0);
    ck_assert_uint_gt(proto_write(&t.proto, t.now_ns, buf, sizeof(buf)), 0);
    t.now_ns += 10 * MS;
    driver_sent(&t);
    t.now_ns += 10 * MS;
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 10000 0 -\n", b));
    ck_assert_int_eq(driver_expect_answer(&t, b, REDLOCK_OK).lock.deadline_ns, 11020 * MS);
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " OTHER " 10000 0 -\n", a));
    ck_assert_int_eq(driver_expect_answer(&t, a, REDLOCK_OK).lock.deadline_ns, 11010 * MS);
}

TEST(each_connection_begins_with_name)
{
    proto_set_label(&t.proto, "me", true);
    uint64_t a = driver_ping(&t);
    driver_expect_sent(&t, "#name NAME me\n#%" PRIu64 " PING\n", a);
    proto_set_label(&t.proto, "you", true);
    ck_assert_str_eq(driver_sent(&t), "");
    ck_assert(driver_receive(&t, "#name ERR bad-arguments no\n"));
    driver_expect_sent(&t, "#name NAME you\n");
    ck_assert(driver_receive(&t, "#name OK\n"));
    ck_assert_str_eq(driver_sent(&t), "");
    proto_end(&t.proto, REDLOCK_BROKEN, "gone", true);
    proto_begin(&t.proto);
    driver_expect_sent(&t, "#name NAME you\n");
    ck_assert(driver_receive(&t, "#name OK\n"));
    ck_assert(!driver_receive(&t, "#name OK\n"));
}

static void note_line(void *context, const char *line)
{
    char *lines = context;
    strcat(lines, line);
    strcat(lines, "|");
}

TEST(lines_of_a_listing_are_passed_on)
{
    struct client_request request;
    struct redlock_event event;
    char lines[512] = "";
    uint64_t a;
    uint64_t b;
    ck_assert(client_request_list(&request, "NODES", &t.error));
    ck_assert_int_eq(proto_ask(&t.proto, &request, t.now_ns, note_line, lines, &a), REDLOCK_OK);
    ck_assert(client_request_list(&request, "VERSION", &t.error));
    ck_assert_int_eq(proto_ask(&t.proto, &request, t.now_ns, note_line, lines, &b), REDLOCK_OK);
    driver_sent(&t);
    ck_assert(driver_receive(&t,
                             "#%" PRIu64 " node=a\n#%" PRIu64 " VERSION 1 x\n#%" PRIu64
                             " node=b\n#%" PRIu64 " END\n",
                             a, b, a, a));
    ck_assert_str_eq(lines, "node=a|VERSION 1 x|node=b|");
    ck_assert(proto_take_answer(&t.proto, a, &event));
    ck_assert_int_eq(event.status, REDLOCK_OK);
    ck_assert(!proto_take_answer(&t.proto, a, &event));
    driver_expect_answer(&t, b, REDLOCK_OK);
}

TEST(place_is_reported_at_the_end_of_the_listing)
{
    struct client_request request;
    ck_assert(client_request_about(&request, CLIENT_REQUEST_PLACE, "a", &t.error));
    uint64_t a = driver_ask(&t, &request);
    driver_expect_sent(&t, "#%" PRIu64 " LOCKS a\n", a);
    ck_assert(driver_receive(&t, "#%" PRIu64 " resource=a token=- place=2 waiters=5\n", a));
    driver_expect_none(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " END\n", a));
    ck_assert_uint_eq(driver_expect_answer(&t, a, REDLOCK_OK).place, 2);
    uint64_t b = driver_ask(&t, &request);
    driver_sent(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " END\n", b));
    ck_assert_uint_eq(driver_expect_answer(&t, b, REDLOCK_OK).place, 0);
}

TEST(request_counts_against_the_limit_until_its_answer_is_taken)
{
    uint64_t first = driver_ping(&t);
    uint64_t id;
    for (unsigned i = 1; i < LIMIT_CLIENT_REQUESTS; i++)
        driver_ping(&t);
    const struct client_request one_more = {.kind = CLIENT_REQUEST_PING};
    while (proto_has_output(&t.proto))
        driver_sent(&t);
    ck_assert_int_eq(proto_ask(&t.proto, &one_more, t.now_ns, NULL, NULL, &id), REDLOCK_LIMIT);
    ck_assert_str_eq(t.proto.error,
                     "1024 requests are under way, or their answers have not been taken yet");
    ck_assert(driver_receive(&t, "#%" PRIu64 " PONG\n", first));
    ck_assert_int_eq(proto_ask(&t.proto, &one_more, t.now_ns, NULL, NULL, &id), REDLOCK_LIMIT);
    driver_expect_answer(&t, first, REDLOCK_OK);
    ck_assert_int_eq(proto_ask(&t.proto, &one_more, t.now_ns, NULL, NULL, &id), REDLOCK_OK);
    ck_assert_uint_ne(id, first);
}

/* --- lines that are no answer --- */

/* The daemon sends one of these lines after it got the requests #1024 (LOCK a) and #2049 (PING). */
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

TEST_ROWS(line_that_answers_no_request_ends_the_connection, foreign)
{
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){0});
    uint64_t b = driver_ping(&t);
    ck_assert_uint_eq(a, 1024);
    ck_assert_uint_eq(b, 2049);
    driver_sent(&t);
    ck_assert(!driver_receive(&t, "%s", foreign[_i].bytes));
    ck_assert(driver_expect_answer(&t, a, foreign[_i].status).ended);
    ck_assert(driver_expect_answer(&t, b, foreign[_i].status).ended);
    driver_expect(&t, REDLOCK_EVENT_CLOSED);
    driver_expect_none(&t);
    ck_assert_uint_eq(t.proto.living, 0);
    ck_assert_uint_eq(t.proto.abandoned, 0);
}

/* The events of a and b both have the status LIMIT, and the `ended` flag tells them apart. The
 * daemon has answered a. It has not answered b: a closing error, which is a line without a request
 * number, ended the connection first. The flags stay as they are if the caller takes the events
 * after the next connection has begun. */
TEST(closing_error_does_not_answer_the_request)
{
    uint64_t a = driver_ping(&t);
    uint64_t b = driver_ping(&t);
    driver_sent(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " LIMIT requests\n", a));
    ck_assert(!driver_receive(&t, "LIMIT clients\n"));
    proto_begin(&t.proto);
    ck_assert(!driver_expect_answer(&t, a, REDLOCK_LIMIT).ended);
    ck_assert(driver_expect_answer(&t, b, REDLOCK_LIMIT).ended);
    uint64_t c = driver_ping(&t);
    driver_sent(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " PONG\n", c));
    ck_assert(!driver_expect_answer(&t, c, REDLOCK_OK).ended);
}

TEST(error_names_the_address_and_the_reason)
{
    uint64_t a = driver_ping(&t);
    driver_sent(&t);
    ck_assert(!driver_receive(&t, "LIMIT clients\n"));
    driver_expect_answer(&t, a, REDLOCK_LIMIT);
    ck_assert_str_eq(t.proto.error, "tcp://there:1: a limit of the daemon is reached: clients");
    proto_begin(&t.proto);
    a = driver_ping(&t);
    driver_sent(&t);
    ck_assert(!driver_receive(&t, "HELLO\n"));
    driver_expect_answer(&t, a, REDLOCK_GARBLED);
    ck_assert_str_eq(t.proto.error, "tcp://there:1: the peer does not speak redlockd's protocol");
    proto_begin(&t.proto);
    a = driver_ping(&t);
    t.now_ns += TIMEOUT;
    proto_expire(&t.proto, t.now_ns);
    driver_expect_answer(&t, a, REDLOCK_TIMEOUT);
    ck_assert_str_eq(t.proto.error, "tcp://there:1 did not answer in time");
}

TEST(second_answer_ends_the_connection)
{
    uint64_t a = driver_ping(&t);
    driver_sent(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " PONG\n", a));
    ck_assert(!driver_receive(&t, "#%" PRIu64 " PONG\n", a));
    driver_expect_answer(&t, a, REDLOCK_OK);
    driver_expect(&t, REDLOCK_EVENT_CLOSED);
}

TEST(answer_to_an_unsent_request_is_garbled)
{
    uint64_t a = driver_ping(&t);
    ck_assert(!driver_receive(&t, "#%" PRIu64 " PONG\n", a));
    driver_expect_answer(&t, a, REDLOCK_GARBLED);
}

TEST(line_length_is_limited)
{
    char line[LIMIT_REPLY + 1] = "! ";
    memset(line + 2, 'x', LIMIT_REPLY - 3);
    line[LIMIT_REPLY - 1] = '\n';
    ck_assert(proto_receive(&t.proto, line, LIMIT_REPLY, t.now_ns, t.now_ns));
    line[LIMIT_REPLY - 1] = 'x';
    ck_assert(!proto_receive(&t.proto, line, LIMIT_REPLY, t.now_ns, t.now_ns));
    proto_begin(&t.proto);
    for (unsigned i = 0; i < LIMIT_REPLY - 1; i++)
        ck_assert(proto_receive(&t.proto, "!", 1, t.now_ns, t.now_ns));
    ck_assert(!proto_receive(&t.proto, "!", 1, t.now_ns, t.now_ns));
}

/* One stream with every kind of line, split into two or three pieces at every byte. */
static const char stream[] =
    "#name OK\n! NEWS x\n#1024 OK " TOKEN " 9000 0 77\n! WARN a " TOKEN " n1:timeout\n"
    "#3074 HELD 500\n! LOST a " TOKEN " noquorum\n#2049 PONG\n#4099 resource=b place=4\n"
    "#4099 END\n";

static void check_stream(size_t first, size_t second)
{
    struct client_request request;
    begin();
    proto_set_label(&t.proto, "me", true);
    driver_acquire(&t, "a", (struct redlock_lock_options){.hold = true, .fence = true});
    driver_ping(&t);
    ck_assert(client_request_about(&request, CLIENT_REQUEST_QUERY, "a", &t.error));
    driver_ask(&t, &request);
    ck_assert(client_request_about(&request, CLIENT_REQUEST_PLACE, "b", &t.error));
    driver_ask(&t, &request);
    driver_sent(&t);
    size_t len = strlen(stream);
    ck_assert(proto_receive(&t.proto, stream, first, t.now_ns, t.now_ns));
    ck_assert(proto_receive(&t.proto, stream + first, second - first, t.now_ns, t.now_ns));
    ck_assert(proto_receive(&t.proto, stream + second, len - second, t.now_ns, t.now_ns));
    ck_assert_int_eq(driver_expect_answer(&t, 1024, REDLOCK_OK).lock.fence, 77);
    struct redlock_event event = driver_next(&t);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.lock.token, TOKEN);
    ck_assert_str_eq(event.lock.resource, "a");
    ck_assert_str_eq(event.reason, "noquorum");
    ck_assert_int_eq(driver_expect_answer(&t, 3074, REDLOCK_HELD).hint_ms, 500);
    driver_expect_answer(&t, 2049, REDLOCK_OK);
    ck_assert_uint_eq(driver_expect_answer(&t, 4099, REDLOCK_OK).place, 4);
    driver_expect_none(&t);
    end();
}

TEST(stream_has_the_same_meaning_however_it_is_split)
{
    end();
    for (size_t first = 0; first < sizeof(stream); first++)
        for (size_t second = first; second < sizeof(stream); second++)
            check_stream(first, second);
    begin();
}

/* --- the end of a connection --- */

TEST(end_of_a_connection_answers_all_requests)
{
    driver_acquire_granted(&t, "a", TOKEN, true);
    driver_acquire_granted(&t, "b", OTHER, true);
    uint64_t c = driver_ping(&t);
    driver_sent(&t);
    uint64_t d = driver_ping(&t);
    ck_assert(driver_receive(&t, "! LOST a " TOKEN " noquorum\n! WARN b " OTHER " n1:timeout\n"));
    proto_end(&t.proto, REDLOCK_BROKEN, "it ended", true);
    driver_expect(&t, REDLOCK_EVENT_LOST);
    driver_expect_answer(&t, c, REDLOCK_BROKEN);
    ck_assert_str_eq(t.proto.error, "tcp://there:1: it ended");
    driver_expect_answer(&t, d, REDLOCK_BROKEN);
    driver_expect(&t, REDLOCK_EVENT_CLOSED);
    driver_expect_none(&t);
    ck_assert_uint_eq(t.proto.holds.count, 0);
    ck_assert_str_eq(driver_sent(&t), "");
}

TEST(partial_line_is_dropped_with_its_connection)
{
    uint64_t a = driver_ping(&t);
    driver_sent(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " PON", a));
    proto_end(&t.proto, REDLOCK_BROKEN, "it ended", true);
    driver_expect_answer(&t, a, REDLOCK_BROKEN);
    driver_expect(&t, REDLOCK_EVENT_CLOSED);
    proto_begin(&t.proto);
    a = driver_ping(&t);
    driver_sent(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " PONG\n", a));
    driver_expect_answer(&t, a, REDLOCK_OK);
}

TEST(end_of_an_unused_connection_is_not_reported)
{
    proto_end(&t.proto, REDLOCK_BROKEN, "it ended", true);
    proto_begin(&t.proto);
    driver_expect_none(&t);
    driver_acquire_granted(&t, "a", TOKEN, true);
    proto_end(&t.proto, REDLOCK_BROKEN, "it ended", true);
    proto_begin(&t.proto);
    proto_end(&t.proto, REDLOCK_BROKEN, "it ended", true);
    proto_begin(&t.proto);
    driver_expect(&t, REDLOCK_EVENT_CLOSED);
    driver_expect_none(&t);
}

TEST(events_that_were_not_taken_are_freed)
{
    driver_acquire_granted(&t, "a", TOKEN, true);
    driver_acquire_granted(&t, "b", OTHER, true);
    driver_acquire(&t, "c", (struct redlock_lock_options){.hold = true});
    driver_sent(&t);
    driver_ping(&t);
    ck_assert(driver_receive(&t, "! LOST a " TOKEN " noquorum\n! WARN b " OTHER " n1:timeout\n"));
}

/* --- AUTH --- */

TEST(secret_is_sent_first_on_each_connection)
{
    proto_set_secret(&t.proto, "s3cret");
    proto_set_label(&t.proto, "me", true);
    proto_begin(&t.proto);
    ck_assert(proto_has_output(&t.proto));
    uint64_t a = driver_ping(&t);
    driver_expect_sent(&t, "#auth AUTH s3cret\n#name NAME me\n#%" PRIu64 " PING\n", a);
    ck_assert(driver_receive(&t, "#auth OK\n#name OK\n#%" PRIu64 " PONG\n", a));
    driver_expect_answer(&t, a, REDLOCK_OK);
    ck_assert(!proto_has_output(&t.proto));
    ck_assert(!driver_receive(&t, "#auth OK\n")); /* a second answer */
    driver_expect(&t, REDLOCK_EVENT_CLOSED);
    proto_begin(&t.proto);
    driver_expect_sent(&t, "#auth AUTH s3cret\n#name NAME me\n");
    proto_set_secret(&t.proto, NULL);
    proto_begin(&t.proto);
    driver_expect_sent(&t, "#name NAME me\n");
}

TEST(no_request_overtakes_the_secret)
{
    char buf[CLIENT_REQUEST_LINE];
    proto_set_secret(&t.proto, "s3cret");
    proto_begin(&t.proto);
    driver_ping(&t);
    ck_assert_uint_eq(proto_write(&t.proto, t.now_ns, buf, sizeof(buf) - 1), 0);
    size_t len = proto_write(&t.proto, t.now_ns, buf, sizeof(buf));
    ck_assert_uint_eq(len, strlen("#auth AUTH s3cret\n"));
}

/* What the daemon may send in place of "#auth OK", and the status with which all requests then end.
 */
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

TEST_ROWS(refused_secret_ends_all_requests, refusals)
{
    proto_set_secret(&t.proto, "s3cret");
    proto_begin(&t.proto);
    uint64_t a = driver_ping(&t);
    uint64_t b = driver_acquire(&t, "a", (struct redlock_lock_options){0});
    driver_sent(&t);
    ck_assert(!driver_receive(&t, "%s", refusals[_i].answer));
    driver_expect_answer(&t, a, refusals[_i].status);
    driver_expect_answer(&t, b, refusals[_i].status);
    driver_expect(&t, REDLOCK_EVENT_CLOSED);
    ck_assert_ptr_null(strstr(t.proto.error, "s3cret"));
}

/* This client has no secret, so it has sent no AUTH. */
TEST(answer_to_an_unsent_auth_ends_the_connection)
{
    driver_ping(&t);
    driver_sent(&t);
    ck_assert(!driver_receive(&t, "#auth DENIED wrong secret\n"));
    ck_assert_int_eq(driver_next(&t).status, REDLOCK_GARBLED);
}
