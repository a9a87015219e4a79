/*
 * client/c/client_request.h and client/c/client_result.h: the line of each request, what a reply
 * means, and until when a grant is valid. The tests pass all times as arguments.
 */
#include <stdio.h>
#include <string.h>

#include "client/c/client_result.h"
#include "protocol/units.h"
#include "tests/runner.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"
#define OTHER "1123456789abcdef0123456789abcdef01234567"
#define MS    NS_PER_MS

static struct redlock_event event;
static char explanation[256];

static const struct client_request acquire = {
    .kind = CLIENT_REQUEST_ACQUIRE, .resource = "a", .ttl_ms = 10000};
static const struct client_request fenced = {
    .kind = CLIENT_REQUEST_ACQUIRE, .resource = "a", .ttl_ms = 10000, .fence = true};
static const struct client_request extend = {
    .kind = CLIENT_REQUEST_EXTEND,
    .resource = "a",
    .token = TOKEN,
    .ttl_ms = 10000,
    .earlier = {.resource = "a", .token = TOKEN, .deadline_ns = 1, .fence = 7, .hold = true}};
static const struct client_request release = {
    .kind = CLIENT_REQUEST_RELEASE, .resource = "a", .token = TOKEN};
static const struct client_request query = {.kind = CLIENT_REQUEST_QUERY, .resource = "a"};
static const struct client_request ping = {.kind = CLIENT_REQUEST_PING};
static const struct client_request place = {
    .kind = CLIENT_REQUEST_PLACE, .resource = "a", .listing = "LOCKS"};
static const struct client_request list = {.kind = CLIENT_REQUEST_LIST, .listing = "HELP"};
static const struct client_request version = {.kind = CLIENT_REQUEST_VERSION};

/* The request was sent at 1000 ms. Its reply was received, and is judged, at 1500 ms. */
static struct moments moments;

static void set_moments(void)
{
    moments = (struct moments){1000 * MS, 1500 * MS, 1500 * MS};
}

const struct runner_settings runner_settings = {.setup = set_moments};

static enum client_result result_of(const struct client_request *request, const char *line)
{
    struct client_reply answer;
    struct text text = {.buf = explanation, .size = sizeof(explanation) - 1};
    event = (struct redlock_event){.status = REDLOCK_MEMORY};
    ck_assert_msg(client_reply_read(line, strlen(line), &answer), "%s", line);
    enum client_result result = client_result_of(request, &moments, &answer, &event, &text);
    explanation[text.len] = '\0';
    return result;
}

/* --- lines --- */

TEST(line_is_split_at_its_tag_and_first_word)
{
    struct client_reply answer;
    ck_assert(client_reply_read("#12 HELD 5 x", 12, &answer));
    ck_assert(client_reply_is(answer.tag, "12"));
    ck_assert(client_reply_is(answer.body, "HELD 5 x"));
    ck_assert_int_eq(answer.first, REPLY_HELD);
    ck_assert(client_reply_is(answer.rest, "5 x"));
    ck_assert(client_reply_read("PONG", 4, &answer));
    ck_assert_ptr_null(answer.tag.at);
    ck_assert_int_eq(answer.first, REPLY_PONG);
    ck_assert_uint_eq(answer.rest.len, 0);
    ck_assert(client_reply_read("! LOST a", 8, &answer));
    ck_assert_int_eq(answer.first, REPLY_PUSH);
    ck_assert(client_reply_read("OKAY", 4, &answer));
    ck_assert_int_eq(answer.first, REPLY_OTHER);
    ck_assert(client_reply_read("ok", 2, &answer));
    ck_assert_int_eq(answer.first, REPLY_OTHER);
}

TEST(malformed_line_is_no_reply)
{
    static const char *const lines[] = {
        "",       " OK",  "#",     "# OK",   "#1",      "#1 ",
        "#1  OK", "OK\r", "OK\t1", "O\x7fK", "\x1b[2J", "#012345678901234567890123456789012 OK",
    };
    struct client_reply answer;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        ck_assert_msg(!client_reply_read(lines[i], strlen(lines[i]), &answer), "%s", lines[i]);
    ck_assert(!client_reply_read("O\0K", 3, &answer));
    char longest[LIMIT_REPLY];
    memset(longest, 'x', sizeof(longest));
    ck_assert(client_reply_read(longest, LIMIT_REPLY - 1, &answer));
    ck_assert(!client_reply_read(longest, LIMIT_REPLY, &answer));
}

TEST(numbers_are_plain_digits_in_range)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "-1",
                                      "+1",
                                      "1.5",
                                      "0x1",
                                      "01",
                                      "1e3",
                                      " 1",
                                      "1 ",
                                      "a",
                                      "101",
                                      "9999999999999999999"};
    int64_t number;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!client_reply_number((struct word){bad[i], strlen(bad[i])}, 100, &number),
                      "%s", bad[i]);
    ck_assert(client_reply_number((struct word){"100", 3}, 100, &number));
    ck_assert_int_eq(number, 100);
    ck_assert(client_reply_number((struct word){"0", 1}, 100, &number));
    ck_assert_int_eq(number, 0);
    ck_assert(client_reply_number((struct word){"999999999999999999", 18}, INT64_MAX, &number));
    ck_assert(!client_reply_number((struct word){"9223372036854775808", 19}, INT64_MAX, &number));
}

/* --- deadlines --- */

/* Grants for a request that was sent at 1000 ms and answered at 1500 ms, and the deadline of
 * each. */
static const struct {
    int64_t validity_ms;
    int64_t elapsed_ms;
    int64_t deadline_ms;
} grants[] = {
    {9000, 0, 10000},
    {9000, 200, 10200},
    {9000, 499, 10499},
    {9000, 500, 10500},
    /* The reply claims more elapsed time than has passed on the client's clock. The client caps
     * it. */
    {9000, 501, 10500},
    {9000, 60000, 10500},
    {9000, REPLY_MS_MAX, 10500},
    {10000, 0, 11000},
    {501, 0, 1501},
    {1, 500, 1501},
};

TEST_ROWS(deadline_counts_from_before_the_request_was_sent, grants)
{
    const struct client_request *requests[] = {&acquire, &extend};
    for (unsigned i = 0; i < 2; i++) {
        char line[128];
        snprintf(line, sizeof(line), "OK " TOKEN " %ld %ld%s", (long)grants[_i].validity_ms,
                 (long)grants[_i].elapsed_ms, i == 0 ? " -" : "");
        ck_assert_int_eq(result_of(requests[i], line), RESULT_FINAL);
        ck_assert_int_eq(event.status, REDLOCK_OK);
        ck_assert_int_eq(event.lock.deadline_ns, grants[_i].deadline_ms * MS);
        ck_assert_str_eq(event.lock.resource, "a");
        ck_assert_str_eq(event.lock.token, TOKEN);
        ck_assert_int_eq(event.lock.ttl_ms, 10000);
    }
}

TEST(fraction_of_a_millisecond_makes_no_deadline_later)
{
    moments = (struct moments){1000 * MS, 1500 * MS + 999999, 1500 * MS + 999999};
    ck_assert_int_eq(result_of(&acquire, "OK " TOKEN " 9000 500 -"), RESULT_FINAL);
    ck_assert_int_eq(event.lock.deadline_ns, 10500 * MS);
    ck_assert_int_eq(result_of(&acquire, "OK " TOKEN " 9000 501 -"), RESULT_FINAL);
    ck_assert_int_eq(event.lock.deadline_ns, 10500 * MS + 999999);
    ck_assert_int_le(event.lock.deadline_ns, moments.sent_ns + (9000 + 501) * MS);
}

TEST(grant_that_has_expired_on_arrival_is_late)
{
    static const char *const lines[] = {"OK " TOKEN " 500 0 -", "OK " TOKEN " 0 500 -",
                                        "OK " TOKEN " 0 999 -", "OK " TOKEN " 1 2 -"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        ck_assert_int_eq(result_of(&acquire, lines[i]), RESULT_FINAL);
        ck_assert_int_eq(event.status, REDLOCK_LATE);
        ck_assert_str_eq(event.lock.token, TOKEN); /* the token is needed to release the lock */
    }
    moments.now_ns = 11000 * MS;
    ck_assert_int_eq(result_of(&acquire, "OK " TOKEN " 10000 0 -"), RESULT_FINAL);
    ck_assert_int_eq(event.status, REDLOCK_LATE);
    moments.now_ns--;
    ck_assert_int_eq(result_of(&acquire, "OK " TOKEN " 10000 0 -"), RESULT_FINAL);
    ck_assert_int_eq(event.status, REDLOCK_OK);
}

TEST(extension_never_moves_the_deadline_back)
{
    struct client_request longer = extend;
    longer.earlier.deadline_ns = 60000 * MS;
    ck_assert_int_eq(result_of(&longer, "OK " TOKEN " 9000 0"), RESULT_FINAL);
    ck_assert_int_eq(event.lock.deadline_ns, 60000 * MS);
    ck_assert_int_eq(event.lock.fence, 7);
    ck_assert(event.lock.hold);
    /* An extension with no validity left is LATE. */
    ck_assert_int_eq(result_of(&longer, "OK " TOKEN " 500 0"), RESULT_FINAL);
    ck_assert_int_eq(event.status, REDLOCK_LATE);
}

TEST(incomplete_grant_is_garbled)
{
    static const struct {
        const struct client_request *request;
        const char *line;
    } rows[] = {
        {&acquire, "OK"},
        {&acquire, "OK "},
        {&acquire, "OK " TOKEN},
        {&acquire, "OK " TOKEN " 9000"},
        {&acquire, "OK " TOKEN " 9000 0"},
        {&acquire, "OK " TOKEN " 9000 0 "},
        {&acquire, "OK " TOKEN " 9000 0 x"},
        {&acquire, "OK " TOKEN " 9000 0 0"},
        {&acquire, "OK " TOKEN " 9000 0 -1"},
        {&acquire, "OK  " TOKEN " 9000 0 -"},
        {&acquire, "OK " TOKEN "  9000 0 -"},
        {&acquire, "OK " TOKEN " -9000 0 -"},
        {&acquire, "OK " TOKEN " 10001 0 -"},
        {&acquire, "OK " TOKEN " 99999999999999999999 0 -"},
        {&acquire, "OK " TOKEN " 9000 -1 -"},
        {&acquire, "OK " TOKEN " 9000 1000000000000000 -"},
        {&acquire, "OK " TOKEN " 9000 1s -"},
        {&acquire, "OK " TOKEN "0 9000 0 -"},
        {&acquire, "OK 123456789abcdef0123456789abcdef01234567 9000 0 -"},
        {&acquire, "OK 0123456789ABCDEF0123456789abcdef01234567 9000 0 -"},
        {&acquire, "OK 0123456789abcdeg0123456789abcdef01234567 9000 0 -"},
        {&fenced, "OK " TOKEN " 9000 0 -"},
        {&fenced, "OK " TOKEN " 9000 0 9007199254740992"},
        {&fenced, "OK " TOKEN " 9000 0 01"},
        {&extend, "OK"},
        {&extend, "OK " TOKEN},
        {&extend, "OK " TOKEN " 9000"},
        {&extend, "OK " OTHER " 9000 0"},
        {&extend, "OK " TOKEN " 10001 0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_msg(result_of(rows[i].request, rows[i].line) == RESULT_GARBLED, "%s",
                      rows[i].line);
        ck_assert_int_eq(event.lock.token[0], '\0');
        ck_assert_int_eq(event.lock.deadline_ns, 0);
    }
}

TEST(unknown_fields_are_ignored)
{
    ck_assert_int_eq(result_of(&acquire, "OK " TOKEN " 9000 0 - new=1 x"), RESULT_FINAL);
    ck_assert_int_eq(event.status, REDLOCK_OK);
    ck_assert_int_eq(result_of(&extend, "OK " TOKEN " 9000 0 new=1"), RESULT_FINAL);
    ck_assert_int_eq(event.status, REDLOCK_OK);
    ck_assert_int_eq(result_of(&release, "OK new=1"), RESULT_FINAL);
    ck_assert_int_eq(event.status, REDLOCK_OK);
    ck_assert_int_eq(result_of(&query, "HELD 5 new=1"), RESULT_FINAL);
    ck_assert_int_eq(event.hint_ms, 5);
    ck_assert_int_eq(result_of(&query, "FREE new=1"), RESULT_FINAL);
    ck_assert_int_eq(result_of(&ping, "PONG new=1"), RESULT_FINAL);
}

TEST(fence_is_required_with_fence_and_optional_without)
{
    ck_assert_int_eq(result_of(&fenced, "OK " TOKEN " 9000 0 9007199254740991"), RESULT_FINAL);
    ck_assert_int_eq(event.lock.fence, INT64_C(9007199254740991));
    ck_assert_int_eq(result_of(&acquire, "OK " TOKEN " 9000 0 5"), RESULT_FINAL);
    ck_assert_int_eq(event.lock.fence, 5);
    ck_assert_int_eq(result_of(&acquire, "OK " TOKEN " 9000 0 -"), RESULT_FINAL);
    ck_assert_int_eq(event.lock.fence, 0);
}

/* --- slots --- */

static const struct client_request slot = {
    .kind = CLIENT_REQUEST_ACQUIRE, .resource = "a", .ttl_ms = 10000, .slots = 12};
static const struct client_request slots = {
    .kind = CLIENT_REQUEST_QUERY, .resource = "a", .slots = 12};

TEST(grant_of_a_slot_names_it)
{
    static const char *const bad[] = {"",      " a",   " a#",    " a#0",     " a#13",
                                      " a#01", " b#1", " a#1#1", " a#1\xff", " aa#1"};
    ck_assert_int_eq(result_of(&slot, "OK " TOKEN " 9000 0 - a#12"), RESULT_FINAL);
    ck_assert_int_eq(event.status, REDLOCK_OK);
    ck_assert_str_eq(event.lock.resource, "a#12");
    ck_assert_int_eq(result_of(&slot, "OK " TOKEN " 9000 0 5 a#1 new=1"), RESULT_FINAL);
    ck_assert_str_eq(event.lock.resource, "a#1");
    ck_assert_int_eq(event.lock.fence, 5);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char line[128];
        snprintf(line, sizeof(line), "OK " TOKEN " 9000 0 -%s", bad[i]);
        ck_assert_msg(result_of(&slot, line) == RESULT_GARBLED, "%s", line);
    }
    ck_assert_int_eq(result_of(&slot, "HELD 500"), RESULT_FINAL);
    ck_assert_str_eq(explanation, "no slot was free; the first expires in 500 ms at the earliest");
}

TEST(status_of_slots_counts_them)
{
    static const char *const bad[] = {"FREE",     "FREE 1", "FREE 1/11",  "FREE 13/12",  "FREE 1/",
                                      "FREE /12", "HELD 5", "HELD 12/12", "HELD 5 -1/12"};
    ck_assert_int_eq(result_of(&slots, "FREE 3/12"), RESULT_FINAL);
    ck_assert_int_eq(event.status, REDLOCK_FREE);
    ck_assert_uint_eq(event.held, 3);
    ck_assert_int_eq(result_of(&slots, "HELD 500 12/12 new=1"), RESULT_FINAL);
    ck_assert_int_eq(event.status, REDLOCK_HELD);
    ck_assert_uint_eq(event.held, 12);
    ck_assert_int_eq(event.hint_ms, 500);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(result_of(&slots, bad[i]) == RESULT_GARBLED, "%s", bad[i]);
}

/* --- replies by request --- */

static const char *const words[] = {
    "GONE",    "HELD 7", "FREE", "NOQUORUM 1/3 need=2", "LATE 3", "LIMIT x", "SHUTDOWN", "DENIED x",
    "ERR x y", "PONG",   "END",  "VERSION 1 x",         "BYE",    "! LOST"};
/* NO: the line is garbled as a reply to this request. MORE: the line belongs to a listing. */
enum { WORDS = sizeof(words) / sizeof(words[0]), NO = -1, MORE = -2 };

static const struct {
    const struct client_request *request;
    int expected[WORDS];
} meanings[] = {
    /* clang-format off */
    {&acquire, {NO, REDLOCK_HELD, NO, REDLOCK_NOQUORUM, REDLOCK_LATE, REDLOCK_LIMIT,
                REDLOCK_SHUTDOWN, REDLOCK_DENIED, REDLOCK_REFUSED, NO, NO, NO, NO, NO}},
    {&extend, {REDLOCK_GONE, NO, NO, REDLOCK_NOQUORUM, REDLOCK_LATE, REDLOCK_LIMIT,
               REDLOCK_SHUTDOWN, REDLOCK_DENIED, REDLOCK_REFUSED, NO, NO, NO, NO, NO}},
    {&release, {REDLOCK_GONE, NO, NO, REDLOCK_NOQUORUM, NO, REDLOCK_LIMIT,
                REDLOCK_SHUTDOWN, REDLOCK_DENIED, REDLOCK_REFUSED, NO, NO, NO, NO, NO}},
    {&query, {NO, REDLOCK_HELD, REDLOCK_FREE, REDLOCK_NOQUORUM, NO, REDLOCK_LIMIT,
              REDLOCK_SHUTDOWN, REDLOCK_DENIED, REDLOCK_REFUSED, NO, NO, NO, NO, NO}},
    {&ping, {NO, NO, NO, NO, NO, REDLOCK_LIMIT,
             REDLOCK_SHUTDOWN, REDLOCK_DENIED, REDLOCK_REFUSED, REDLOCK_OK, NO, NO, NO, NO}},
    {&version, {NO, NO, NO, NO, NO, REDLOCK_LIMIT,
                REDLOCK_SHUTDOWN, REDLOCK_DENIED, REDLOCK_REFUSED, NO, NO, REDLOCK_OK, NO, NO}},
    {&list, {MORE, MORE, MORE, MORE, MORE, REDLOCK_LIMIT,
             REDLOCK_SHUTDOWN, REDLOCK_DENIED, REDLOCK_REFUSED, MORE, REDLOCK_OK, MORE, MORE,
             MORE}},
    /* clang-format on */
};

TEST_ROWS(each_request_accepts_only_its_replies, meanings)
{
    for (unsigned i = 0; i < WORDS; i++) {
        int expected = meanings[_i].expected[i];
        enum client_result result = result_of(meanings[_i].request, words[i]);
        if (expected < 0)
            ck_assert_msg(result == (expected == NO ? RESULT_GARBLED : RESULT_MORE), "%s",
                          words[i]);
        else
            ck_assert_msg(result == RESULT_FINAL && (int)event.status == expected, "%s", words[i]);
        ck_assert_int_eq(event.lock.token[0], '\0');
    }
}

TEST(hint_is_a_time_or_unknown)
{
    ck_assert_int_eq(result_of(&acquire, "HELD -1"), RESULT_FINAL);
    ck_assert_int_eq(event.hint_ms, -1);
    ck_assert_str_eq(explanation, "another client holds the lock");
    ck_assert_int_eq(result_of(&acquire, "HELD 7"), RESULT_FINAL);
    ck_assert_str_eq(explanation,
                     "another client holds the lock; it expires in 7 ms at the earliest");
    ck_assert_int_eq(result_of(&acquire, "HELD 29981"), RESULT_FINAL);
    ck_assert_int_eq(event.hint_ms, 29981);
    ck_assert_str_eq(explanation,
                     "another client holds the lock; it expires in 29.9 s at the earliest");
    ck_assert_int_eq(result_of(&acquire, "HELD"), RESULT_GARBLED);
    ck_assert_int_eq(result_of(&acquire, "HELD -2"), RESULT_GARBLED);
    ck_assert_int_eq(result_of(&acquire, "HELD soon"), RESULT_GARBLED);
}

TEST(late_reply_says_how_long_it_took)
{
    ck_assert_int_eq(result_of(&acquire, "LATE 545"), RESULT_FINAL);
    ck_assert_str_eq(explanation, "the masters granted the lock too late, after 545 ms");
    ck_assert_int_eq(result_of(&extend, "LATE 2981 new=1"), RESULT_FINAL);
    ck_assert_str_eq(explanation, "the masters granted the lock too late, after 2.9 s");
    ck_assert_int_eq(result_of(&acquire, "LATE"), RESULT_GARBLED);
    ck_assert_int_eq(result_of(&acquire, "LATE soon"), RESULT_GARBLED);
}

TEST(details_are_printable)
{
    ck_assert_int_eq(result_of(&acquire, "NOQUORUM 1/3 need=2 b:timeout"), RESULT_FINAL);
    ck_assert_str_eq(explanation, "too few masters could vote: 1/3 need=2 b:timeout");
    ck_assert_int_eq(result_of(&acquire, "LIMIT wai\xc2\x9bters"), RESULT_FINAL);
    ck_assert_str_eq(explanation, "a limit of the daemon is reached: wai\?\?ters");
    ck_assert_int_eq(result_of(&ping, "PONG"), RESULT_FINAL);
    ck_assert_str_eq(explanation, "");
}

TEST(limits_of_a_holder_are_explained)
{
    ck_assert_int_eq(result_of(&extend, "LIMIT hold"), RESULT_FINAL);
    ck_assert_str_eq(explanation,
                     "the lock was held for as long as the daemon allows (max_hold): hold");
    ck_assert_int_eq(result_of(&extend, "LIMIT extensions"), RESULT_FINAL);
    ck_assert_ptr_nonnull(strstr(explanation, "(max_extensions)"));
}

static const struct {
    const char *line;
    int64_t place; /* NO: the line is garbled */
} places[] = {
    {"resource=a token=- client=1 name=- place=3 waiters=5", 3},
    {"resource=a place=1", 1},
    {"resource=a place=4294967295", UINT32_MAX},
    {"resource=a place=-", 0},
    {"resource=a waiters=5", 0},
    {"resource=ab place=3", 0},
    {"resource= place=3", 0},
    {"place=3", 0},
    {"more=3", 0},
    {"resource=a name=place=4 x", 0},
    {"resource=a place=", NO},
    {"resource=a place=0", NO},
    {"resource=a place=-1", NO},
    {"resource=a place=x", NO},
    {"resource=a place=4294967296", NO},
};

TEST_ROWS(place_of_a_waiter_is_found_in_the_listing, places)
{
    enum client_result result = result_of(&place, places[_i].line);
    if (places[_i].place == NO) {
        ck_assert_int_eq(result, RESULT_GARBLED);
    } else {
        ck_assert_int_eq(result, RESULT_MORE);
        ck_assert_int_eq(event.place, places[_i].place);
    }
}

TEST(pushes_name_a_token)
{
    static const struct {
        const char *line;
        enum push push;
    } rows[] = {
        {"! LOST a " TOKEN " noquorum", PUSH_IS_LOST},
        {"! LOST a " TOKEN " noquorum new=1", PUSH_IS_LOST},
        {"! WARN a " TOKEN " n1:timeout", PUSH_IS_WARN},
        {"! NEWS of the world", PUSH_IS_UNKNOWN},
        {"! LOST a " TOKEN, PUSH_IS_GARBLED},
        {"! LOST a " TOKEN " ", PUSH_IS_GARBLED},
        {"! LOST " TOKEN " noquorum", PUSH_IS_GARBLED},
        {"! LOST a 0" TOKEN " noquorum", PUSH_IS_GARBLED},
        {"! WARN", PUSH_IS_GARBLED},
        {"! ", PUSH_IS_GARBLED},
        {"!", PUSH_IS_GARBLED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct client_reply answer;
        struct word token;
        struct word reason;
        ck_assert(client_reply_read(rows[i].line, strlen(rows[i].line), &answer));
        ck_assert_msg(client_result_of_push(&answer, &token, &reason) == rows[i].push, "%s",
                      rows[i].line);
    }
}

/* --- request lines --- */

static void check_line(const struct client_request *request, const char *expected)
{
    char buf[CLIENT_REQUEST_LINE + 1];
    size_t len = client_request_format(request, 1025, buf);
    buf[len] = '\0';
    ck_assert_str_eq(buf, expected);
}

TEST(requests_are_formatted_as_lines)
{
    struct client_request request;
    struct error error;
    char buf[CLIENT_REQUEST_LINE + 1];
    check_line(&acquire, "#1025 LOCK a 10000\n");
    ck_assert(client_request_acquire(
        &request, "a", 1,
        &(struct redlock_lock_options){.wait_ms = 86400000, .fence = true, .hold = true}, &error));
    check_line(&request, "#1025 LOCK a 1 WAIT 86400000 FENCE HOLD\n");
    ck_assert(client_request_acquire(
        &request, "a", 1, &(struct redlock_lock_options){.hold = true, .linger = true}, &error));
    check_line(&request, "#1025 LOCK a 1 HOLD LINGER\n");
    ck_assert(!client_request_acquire(&request, "a", 1,
                                      &(struct redlock_lock_options){.linger = true}, &error));
    ck_assert_str_eq(error.text, "linger requires hold");
    ck_assert(client_request_acquire(
        &request, "a", 1, &(struct redlock_lock_options){.slots = 1000, .wait_ms = 5}, &error));
    check_line(&request, "#1025 LOCK a 1 SLOTS 1000 WAIT 5\n");
    check_line(&slots, "#1025 STATUS a SLOTS 12\n");
    check_line(&extend, "#1025 EXTEND a " TOKEN " 10000\n");
    check_line(&release, "#1025 UNLOCK a " TOKEN "\n");
    check_line(&query, "#1025 STATUS a\n");
    check_line(&ping, "#1025 PING\n");
    check_line(&place, "#1025 LOCKS a\n");
    check_line(&version, "#1025 VERSION\n");
    ck_assert(client_request_list(&request, "locks A b", &error) == false);
    ck_assert(client_request_list(&request, "locks A", &error));
    check_line(&request, "#1025 LOCKS A\n");
    ck_assert(client_request_list(&request, "Nodes", &error));
    check_line(&request, "#1025 NODES\n");
    ck_assert(client_request_list(&request, "version", &error));
    check_line(&request, "#1025 VERSION\n");
    buf[client_request_format_name("me", buf)] = '\0';
    ck_assert_str_eq(buf, "#name NAME me\n");
}

TEST(longest_request_fits_its_buffer)
{
    struct client_request request = {.kind = CLIENT_REQUEST_ACQUIRE,
                                     .ttl_ms = CLIENT_REQUEST_TTL_MAX_MS,
                                     .wait_ms = LIMIT_WAIT_MS,
                                     .slots = LIMIT_SLOTS,
                                     .fence = true,
                                     .hold = true,
                                     .linger = true};
    char buf[CLIENT_REQUEST_LINE];
    memset(request.resource, 'x', LIMIT_RESOURCE);
    memcpy(request.token, TOKEN, sizeof(TOKEN));
    size_t len = client_request_format(&request, INT64_MAX, buf);
    ck_assert_int_eq(buf[len - 1], '\n');
    request.kind = CLIENT_REQUEST_EXTEND;
    len = client_request_format(&request, INT64_MAX, buf);
    ck_assert_int_eq(buf[len - 1], '\n');
}

TEST(invalid_request_is_refused_before_it_is_sent)
{
    char name[LIMIT_RESOURCE + 2];
    struct client_request request;
    struct error error;
    memset(name, 'x', sizeof(name));
    name[LIMIT_RESOURCE + 1] = '\0';
    static const char *const bad[] = {"", "a b", "a\n", "\x7f", "a\tb", " "};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert(!client_request_acquire(&request, bad[i], 1, NULL, &error));
    ck_assert_str_eq(error.text, "the resource name must not contain spaces or control characters");
    ck_assert(!client_request_acquire(&request, name, 1, NULL, &error));
    ck_assert_str_eq(error.text, "the resource name must have 1 to 256 bytes");
    ck_assert(!client_request_acquire(&request, NULL, 1, NULL, &error));
    ck_assert(client_request_acquire(&request, name + 1, 1, NULL, &error));
    ck_assert(client_request_about(&request, CLIENT_REQUEST_QUERY, "\xc3\xa4", &error));
    ck_assert(!client_request_acquire(&request, "a", 0, NULL, &error));
    ck_assert_str_eq(error.text, "the TTL must be between 1 and 999999999999 ms");
    ck_assert(!client_request_acquire(&request, "a", INT64_MAX, NULL, &error));
    ck_assert(!client_request_acquire(&request, "a", INT64_MIN, NULL, &error));
    ck_assert(!client_request_acquire(&request, "a", 1,
                                      &(struct redlock_lock_options){.wait_ms = -1}, &error));
    ck_assert_str_eq(error.text, "the wait must be between 0 and 86400000 ms");
    ck_assert(!client_request_acquire(&request, "a", 1,
                                      &(struct redlock_lock_options){.wait_ms = 86400001}, &error));
    const struct redlock_lock_options many = {.slots = 1001};
    ck_assert(!client_request_acquire(&request, "a", 1, &many, &error));
    ck_assert_str_eq(error.text, "slots must be between 1 and 1000");
    ck_assert(!client_request_query_slots(&request, "a", 0, &error));
    const struct redlock_lock_options ten = {.slots = 10};
    ck_assert(!client_request_acquire(&request, name + 1, 1, &ten, &error));
    ck_assert_str_eq(error.text,
                     "with 10 slots, the resource name must have at most 253 bytes, because #10 is "
                     "appended");
    ck_assert(client_request_acquire(&request, name + 4, 1, &ten, &error));
    struct redlock_lock lock = {.resource = "a", .token = "x"};
    ck_assert(!client_request_extend(&request, &lock, 1, &error));
    ck_assert_str_eq(error.text, "the token must be 40 lower-case hex digits");
    ck_assert(!client_request_release(&request, "a", "", &error));
    ck_assert(!client_request_list(&request, "QUIT", &error));
    ck_assert(!client_request_list(&request, NULL, &error));
    ck_assert(!client_request_list(&request, "NODES\nQUIT", &error));
    ck_assert(!client_request_list(&request, "LOCKS ", &error));
    ck_assert(client_request_label_is_fine("a-Z_0.9:x"));
    ck_assert(!client_request_label_is_fine(""));
    ck_assert(!client_request_label_is_fine(NULL));
    ck_assert(!client_request_label_is_fine("a b"));
    ck_assert(!client_request_label_is_fine("123456789012345678901234567890123"));
}
