/*
 * protocol/request.h: every kind of line, valid and invalid, and the exact texts of the errors; and
 * the same requests as the words of a RESP command.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "protocol/request.h"
#include "tests/runner.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

static const struct request_limits limits = {
    .ttl_min_ms = 13,
    .ttl_max_ms = 60000,
    .hold_ttl_min_ms = 1000,
    .key_prefix = "p:",
    .key_prefix_len = 2,
};

static struct request request;
static struct error error;

static enum request_error parse(const char *line)
{
    memset(&error, 0, sizeof(error));
    return request_parse(line, strlen(line), &limits, &request, &error);
}

static void assert_view(const char *view, size_t len, const char *expected)
{
    ck_assert_uint_eq(len, strlen(expected));
    ck_assert_mem_eq(view, expected, len);
}

TEST(lock_has_a_resource_and_a_ttl)
{
    ck_assert_int_eq(parse("LOCK deploy 30s"), REQUEST_FINE);
    ck_assert_int_eq(request.verb, VERB_LOCK);
    assert_view(request.resource, request.resource_len, "deploy");
    ck_assert_int_eq(request.ttl_ms, 30000);
    ck_assert_ptr_null(request.tag);
}

TEST(lock_options_are_parsed_in_any_order)
{
    ck_assert_int_eq(parse("LOCK a 1s"), REQUEST_FINE);
    ck_assert(!request.fence);
    ck_assert_int_eq(parse("LOCK a 1s fence"), REQUEST_FINE);
    ck_assert(request.fence);
    ck_assert(!request.hold);
    ck_assert_int_eq(request.wait_ms, 0);
    ck_assert_int_eq(parse("LOCK a 1s Hold Wait 2s Fence"), REQUEST_FINE);
    ck_assert(request.fence);
    ck_assert(request.hold);
    ck_assert_int_eq(request.wait_ms, 2000);
    ck_assert_int_eq(parse("LOCK a 1s WAIT 24h"), REQUEST_FINE);
    ck_assert_int_eq(request.wait_ms, 86400000);
}

TEST(slots_are_a_number)
{
    ck_assert_int_eq(parse("LOCK a 1s"), REQUEST_FINE);
    ck_assert_uint_eq(request.slots, 0);
    ck_assert_int_eq(parse("LOCK a#3 1s slots 1"), REQUEST_FINE);
    ck_assert_uint_eq(request.slots, 1);
    ck_assert_int_eq(parse("#1 LOCK a 1s HOLD LINGER WAIT 1s FENCE SLOTS 1000"), REQUEST_FINE);
    ck_assert_uint_eq(request.slots, 1000);
    ck_assert(request.linger);
    ck_assert_int_eq(parse("STATUS a"), REQUEST_FINE);
    ck_assert_uint_eq(request.slots, 0);
    ck_assert_int_eq(parse("STATUS a SLOTS 007"), REQUEST_FINE);
    ck_assert_uint_eq(request.slots, 7);
}

/* The names of the slots must not exceed the limit either. */
TEST(slots_shorten_the_longest_resource)
{
    static const struct {
        unsigned slots;
        int longest;
    } cases[] = {{1, 254}, {9, 254}, {10, 253}, {99, 253}, {100, 252}, {999, 252}, {1000, 251}};
    char line[LIMIT_LINE];
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(line, sizeof(line), "STATUS %0*d SLOTS %u", cases[i].longest, 0, cases[i].slots);
        ck_assert_int_eq(parse(line), REQUEST_FINE);
        snprintf(line, sizeof(line), "LOCK %0*d 1s SLOTS %u", cases[i].longest + 1, 0,
                 cases[i].slots);
        ck_assert_int_eq(parse(line), REQUEST_BAD_RESOURCE);
    }
    ck_assert_str_eq(
        error.text,
        "with SLOTS 1000, a resource must be at most 251 bytes, because #1000 is appended");
}

TEST(words_are_separated_by_any_number_of_spaces)
{
    ck_assert_int_eq(parse("  lock   a\xc3\xa4   250  "), REQUEST_FINE);
    assert_view(request.resource, request.resource_len, "a\xc3\xa4");
    ck_assert_int_eq(request.ttl_ms, 250);
}

TEST(unlock_extend_status_and_name_have_their_arguments)
{
    ck_assert_int_eq(parse("Unlock a " TOKEN), REQUEST_FINE);
    assert_view(request.token, LIMIT_TOKEN, TOKEN);
    ck_assert_int_eq(parse("EXTEND a " TOKEN " 1m"), REQUEST_FINE);
    ck_assert_int_eq(request.ttl_ms, 60000);
    ck_assert_int_eq(parse("STATUS a"), REQUEST_FINE);
    ck_assert_int_eq(parse("NAME web-1"), REQUEST_FINE);
    assert_view(request.label, request.label_len, "web-1");
}

TEST(locks_accepts_an_optional_resource)
{
    ck_assert_int_eq(parse("LOCKS"), REQUEST_FINE);
    ck_assert_int_eq(request.verb, VERB_LOCKS);
    ck_assert_ptr_null(request.resource);
    ck_assert_int_eq(parse("#1 locks  Deploy "), REQUEST_FINE);
    ck_assert_int_eq(request.verb, VERB_LOCKS);
    assert_view(request.resource, request.resource_len, "Deploy");
}

TEST(verbs_without_arguments_refuse_any)
{
    static const char *const words[] = {"NODES",   "stats", "Clients", "PING",
                                        "VERSION", "HELP",  "QUIT"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char line[32];
        ck_assert_int_eq(parse(words[i]), REQUEST_FINE);
        snprintf(line, sizeof(line), "%s x", words[i]);
        ck_assert_int_eq(parse(line), REQUEST_BAD_ARGUMENTS);
        ck_assert_ptr_nonnull(strstr(error.text, "takes no arguments"));
    }
}

TEST(secret_is_any_word_within_the_length_limit)
{
    char line[300] = "auth ";
    ck_assert_int_eq(parse("AUTH s\303\251cret#1"), REQUEST_FINE);
    ck_assert_uint_eq(request.secret_len, 9);
    ck_assert_int_eq(memcmp(request.secret, "s\303\251cret#1", 9), 0);
    memset(line + 5, 'x', LIMIT_SECRET);
    ck_assert_int_eq(parse(line), REQUEST_FINE);
    line[5 + LIMIT_SECRET] = 'x';
    ck_assert_int_eq(parse(line), REQUEST_BAD_ARGUMENTS);
    ck_assert_str_eq(error.text, "a secret must be at most 256 bytes");
}

TEST(empty_line_is_no_request)
{
    ck_assert_int_eq(parse(""), REQUEST_EMPTY);
    ck_assert_int_eq(parse("    "), REQUEST_EMPTY);
}

#define LOCK_USAGE "LOCK takes <resource> <ttl> [SLOTS <n>] [WAIT <time>] [FENCE] [HOLD [LINGER]]"

static const struct {
    const char *line;
    enum request_error code;
    const char *text;
} bad_lines[] = {
    {"FOO", REQUEST_UNKNOWN_VERB, "unknown verb \"FOO\"; send HELP for a list"},
    {"LOCKX a 1s", REQUEST_UNKNOWN_VERB, "unknown verb \"LOCKX\"; send HELP for a list"},
    {"\xff\"", REQUEST_UNKNOWN_VERB, "unknown verb \"\\xff\\x22\"; send HELP for a list"},
    {"#1", REQUEST_UNKNOWN_VERB, "a verb must follow the tag"},
    {"# PING", REQUEST_BAD_TAG, "a tag must be 1 to 32 of A-Z a-z 0-9 _ . : -"},
    {"#a/b PING", REQUEST_BAD_TAG, "a tag must be 1 to 32 of A-Z a-z 0-9 _ . : -"},
    {"#123456789012345678901234567890123 PING", REQUEST_BAD_TAG,
     "a tag must be 1 to 32 of A-Z a-z 0-9 _ . : -"},
    {"LOCK", REQUEST_BAD_ARGUMENTS, LOCK_USAGE},
    {"LOCK a", REQUEST_BAD_ARGUMENTS, LOCK_USAGE},
    {"LOCK a 1s now", REQUEST_BAD_ARGUMENTS, "LOCK option \"now\" is unknown; " LOCK_USAGE},
    {"LOCK a 1s FENCE FENCE", REQUEST_BAD_ARGUMENTS, "LOCK option \"FENCE\" is given twice"},
    {"LOCK a 1s hold fence Hold", REQUEST_BAD_ARGUMENTS, "LOCK option \"Hold\" is given twice"},
    {"LOCK a 1s WAIT 1s WAIT 1s", REQUEST_BAD_ARGUMENTS, "LOCK option \"WAIT\" is given twice"},
    {"LOCK a 1s FENCE now", REQUEST_BAD_ARGUMENTS, "LOCK option \"now\" is unknown; " LOCK_USAGE},
    {"LOCK a 1s LINGER", REQUEST_BAD_ARGUMENTS, "LINGER needs HOLD; write HOLD LINGER"},
    {"LOCK a 1s FENCE LINGER WAIT 1s", REQUEST_BAD_ARGUMENTS,
     "LINGER needs HOLD; write HOLD LINGER"},
    {"LOCK a 1s HOLD linger Linger", REQUEST_BAD_ARGUMENTS,
     "LOCK option \"Linger\" is given twice"},
    {"LOCK a 999ms LINGER HOLD", REQUEST_TTL_RANGE,
     "TTL 999ms with HOLD must be between 1s and 1m"},
    {"LOCK a 1s FENCE HOLD LINGER WAIT 1s now a b c d e f", REQUEST_BAD_ARGUMENTS,
     "LOCK option \"now\" is unknown; " LOCK_USAGE},
    {"LOCK a 1s FENCE HOLD WAIT 1s now a b c d e f", REQUEST_BAD_ARGUMENTS,
     "LOCK option \"now\" is unknown; " LOCK_USAGE},
    {"LOCK a 1s WAIT", REQUEST_BAD_ARGUMENTS, "WAIT needs a time, for example WAIT 30s"},
    {"LOCK a 1s WAIT HOLD", REQUEST_BAD_TIME,
     "\"HOLD\" is not a time; write 30s, 500ms, or milliseconds"},
    {"LOCK a 1s WAIT 86400001", REQUEST_WAIT_RANGE, "WAIT 86400001ms must be at most 24h"},
    {"LOCK a 1s WAIT 999999999999999", REQUEST_WAIT_RANGE,
     "WAIT \"999999999999999\" must be at most 24h"},
    {"LOCK a 999ms HOLD", REQUEST_TTL_RANGE, "TTL 999ms with HOLD must be between 1s and 1m"},
    {"LOCK a 1h FENCE HOLD", REQUEST_TTL_RANGE, "TTL 1h with HOLD must be between 1s and 1m"},
    {"LOCK a 1h a b c d e f g h i j HOLD", REQUEST_TTL_RANGE, "TTL 1h must be between 13ms and 1m"},
    {"LOCK a 1h FENCE", REQUEST_TTL_RANGE, "TTL 1h must be between 13ms and 1m"},
    {"LOCK a 1s SLOTS", REQUEST_BAD_ARGUMENTS, "SLOTS needs a number, for example SLOTS 3"},
    {"LOCK a 1s SLOTS 1 SLOTS 2", REQUEST_BAD_ARGUMENTS, "LOCK option \"SLOTS\" is given twice"},
    {"LOCK a 1s SLOTS 0", REQUEST_SLOTS_RANGE, "SLOTS must be between 1 and 1000, not \"0\""},
    {"LOCK a 1s SLOTS 1001", REQUEST_SLOTS_RANGE, "SLOTS must be between 1 and 1000, not \"1001\""},
    {"LOCK a 1s SLOTS -1", REQUEST_SLOTS_RANGE, "SLOTS must be between 1 and 1000, not \"-1\""},
    {"LOCK a 1s SLOTS 3x", REQUEST_SLOTS_RANGE, "SLOTS must be between 1 and 1000, not \"3x\""},
    {"LOCK a 1s SLOTS WAIT 1s", REQUEST_SLOTS_RANGE,
     "SLOTS must be between 1 and 1000, not \"WAIT\""},
    {"LOCK a 1s SLOTS 18446744073709551617", REQUEST_SLOTS_RANGE,
     "SLOTS must be between 1 and 1000, not \"18446744073709551617\""},
    {"STATUS a SLOTS", REQUEST_BAD_ARGUMENTS, "SLOTS needs a number, for example SLOTS 3"},
    {"STATUS a WAIT 1s", REQUEST_BAD_ARGUMENTS, "STATUS takes <resource> [SLOTS <n>]"},
    {"STATUS a SLOTS 0", REQUEST_SLOTS_RANGE, "SLOTS must be between 1 and 1000, not \"0\""},
    {"AUTH", REQUEST_BAD_ARGUMENTS, "AUTH takes <secret>"},
    {"AUTH a b", REQUEST_BAD_ARGUMENTS, "AUTH takes <secret>"},
    {"LOCKS a b", REQUEST_BAD_ARGUMENTS, "LOCKS takes [<resource>]"},
    {"LOCKS a b c d e f g h i j", REQUEST_BAD_ARGUMENTS, "LOCKS takes [<resource>]"},
    {"UNLOCK a", REQUEST_BAD_ARGUMENTS, "UNLOCK takes <resource> <token>"},
    {"UNLOCK a " TOKEN " x", REQUEST_BAD_ARGUMENTS, "UNLOCK takes <resource> <token>"},
    {"EXTEND a " TOKEN, REQUEST_BAD_ARGUMENTS, "EXTEND takes <resource> <token> <ttl>"},
    {"STATUS", REQUEST_BAD_ARGUMENTS, "STATUS takes <resource> [SLOTS <n>]"},
    {"STATUS a b c d e f g h i j", REQUEST_BAD_ARGUMENTS, "STATUS takes <resource> [SLOTS <n>]"},
    {"NAME", REQUEST_BAD_ARGUMENTS, "NAME takes <label>"},
    {"NAME a/b", REQUEST_BAD_ARGUMENTS, "a label must be 1 to 32 of A-Z a-z 0-9 _ . : -"},
    {"LOCK a\tb 1s", REQUEST_BAD_BYTE,
     "byte 7 is 0x09; control characters are not allowed, separate words with spaces"},
    {"PING\r", REQUEST_BAD_BYTE,
     "byte 5 is 0x0d; control characters are not allowed, separate words with spaces"},
    {"LOCK a\x7f 1s", REQUEST_BAD_BYTE,
     "byte 7 is 0x7f; control characters are not allowed, separate words with spaces"},
    {"UNLOCK a 0123", REQUEST_BAD_TOKEN, "a token must be 40 hex digits, as in the reply to LOCK"},
    {"UNLOCK a 0123456789ABCDEF0123456789abcdef01234567", REQUEST_BAD_TOKEN,
     "a token must be in lower case, as in the reply to LOCK"},
    {"UNLOCK a 0123456789abcdef0123456789abcdef0123456g", REQUEST_BAD_TOKEN,
     "a token must have hex digits only"},
    {"EXTEND a 0123456789abcdef0123456789abcdef0123456/ 1s", REQUEST_BAD_TOKEN,
     "a token must have hex digits only"},
    {"LOCK a soon", REQUEST_BAD_TIME, "\"soon\" is not a time; write 30s, 500ms, or milliseconds"},
    {"LOCK a -1s", REQUEST_BAD_TIME, "\"-1s\" is not a time; write 30s, 500ms, or milliseconds"},
    {"LOCK a 1.5s", REQUEST_BAD_TIME, "\"1.5s\" is not a time; write 30s, 500ms, or milliseconds"},
    {"LOCK a 1S", REQUEST_BAD_TIME, "\"1S\" is not a time; write 30s, 500ms, or milliseconds"},
    {"LOCK a 12", REQUEST_TTL_RANGE, "TTL 12ms must be between 13ms and 1m"},
    {"LOCK a 60001", REQUEST_TTL_RANGE, "TTL 60001ms must be between 13ms and 1m"},
    {"LOCK a 999999999999999", REQUEST_TTL_RANGE,
     "TTL \"999999999999999\" must be between 13ms and 1m"},
    {"LOCK a 2562048h", REQUEST_TTL_RANGE, "TTL \"2562048h\" must be between 13ms and 1m"},
    {"LOCK a 99999999999999999999", REQUEST_TTL_RANGE,
     "TTL \"99999999999999999999\" must be between 13ms and 1m"},
    {"LOCK a 99999999999999999999x", REQUEST_BAD_TIME,
     "\"99999999999999999999x\" is not a time; write 30s, 500ms, or milliseconds"},
    {"LOCK a 0", REQUEST_TTL_RANGE, "TTL \"0\" must be between 13ms and 1m"},
    {"EXTEND a " TOKEN " 61s", REQUEST_TTL_RANGE, "TTL 61s must be between 13ms and 1m"},
};

TEST_ROWS(each_invalid_line_has_its_code_and_advice, bad_lines)
{
    ck_assert_msg(parse(bad_lines[_i].line) == bad_lines[_i].code, "line \"%s\" gave \"%s\"",
                  bad_lines[_i].line, error.text);
    ck_assert_str_eq(error.text, bad_lines[_i].text);
}

/* The least TTL of a HOLD depends on node_timeout and the drift, so it can exceed max_ttl. */
TEST(error_says_that_max_ttl_is_too_short_for_a_hold)
{
    static const char line[] = "LOCK a 100ms HOLD";
    const struct request_limits brief = {
        .ttl_min_ms = 13, .ttl_max_ms = 100, .hold_ttl_min_ms = 186, .key_prefix = ""};
    struct request held;
    ck_assert_int_eq(request_parse(line, strlen(line), &brief, &held, &error), REQUEST_TTL_RANGE);
    ck_assert_str_eq(error.text,
                     "HOLD needs a TTL of at least 186ms, but max_ttl is 100ms; lock without HOLD");
}

/* A long min_validity requires a greater TTL than HOLD does. */
TEST(least_ttl_of_a_hold_is_at_least_that_of_any_lock)
{
    static const char line[] = "LOCK a 2s HOLD";
    const struct request_limits strict = {
        .ttl_min_ms = 2032, .ttl_max_ms = 10000, .hold_ttl_min_ms = 186, .key_prefix = ""};
    struct request held;
    ck_assert_int_eq(request_parse(line, strlen(line), &strict, &held, &error), REQUEST_TTL_RANGE);
    ck_assert_str_eq(error.text, "TTL 2s with HOLD must be between 2032ms and 10s");
}

TEST(line_length_is_limited_to_2048_bytes)
{
    char line[LIMIT_LINE + 1] = "#x PING";
    memset(line + 7, ' ', LIMIT_LINE - 8);
    ck_assert_int_eq(parse(line), REQUEST_FINE);
    line[LIMIT_LINE - 1] = ' ';
    ck_assert_int_eq(parse(line), REQUEST_LINE_TOO_LONG);
    ck_assert_str_eq(error.text, "a line must be at most 2048 bytes");
    assert_view(request.tag, request.tag_len, "x");
}

TEST(both_ends_of_the_ttl_range_are_valid)
{
    ck_assert_int_eq(parse("LOCK a 13"), REQUEST_FINE);
    ck_assert_int_eq(parse("LOCK a 60s"), REQUEST_FINE);
}

TEST(resource_has_1_to_256_bytes)
{
    char line[400] = "STATUS ";
    memset(line + 7, 'r', 257);
    ck_assert_int_eq(parse(line), REQUEST_BAD_RESOURCE);
    ck_assert_ptr_nonnull(strstr(error.text, "is longer than 256 bytes"));
    line[7 + 256] = '\0';
    ck_assert_int_eq(parse(line), REQUEST_FINE);
    ck_assert_uint_eq(request.resource_len, 256);
    memcpy(line, "LOCKS  ", 7);
    ck_assert_int_eq(parse(line), REQUEST_FINE);
    ck_assert_uint_eq(request.resource_len, 256);
    line[7 + 256] = 'r';
    ck_assert_int_eq(parse(line), REQUEST_BAD_RESOURCE);
    ck_assert_ptr_nonnull(strstr(error.text, "is longer than 256 bytes"));
}

TEST(resources_with_redlockds_own_keys_are_refused)
{
    const struct request_limits bare = {.ttl_min_ms = 1, .ttl_max_ms = 2, .key_prefix = ""};
    const struct request_limits half = {
        .ttl_min_ms = 1, .ttl_max_ms = 2, .key_prefix = "redlock", .key_prefix_len = 7};
    static const char whole[] = "STATUS redlockd:node";
    static const char rest[] = "STATUS d:node";
    static const char locks[] = "LOCKS redlockd:node";
    ck_assert_int_eq(request_parse(whole, strlen(whole), &bare, &request, &error),
                     REQUEST_BAD_RESOURCE);
    ck_assert_int_eq(request_parse(rest, strlen(rest), &half, &request, &error),
                     REQUEST_BAD_RESOURCE);
    ck_assert_int_eq(request_parse(locks, strlen(locks), &bare, &request, &error),
                     REQUEST_BAD_RESOURCE);
    ck_assert_int_eq(parse(whole), REQUEST_FINE); /* with a prefix it is another key */
}

TEST(every_byte_is_part_of_a_resource_or_refused)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char line[] = "STATUS aXb";
        line[8] = (char)byte;
        enum request_error got = request_parse(line, 10, &limits, &request, &error);
        if (byte == ' ')
            ck_assert_int_eq(got, REQUEST_BAD_ARGUMENTS);
        else if (byte < 0x20 || byte == 0x7f)
            ck_assert_int_eq(got, REQUEST_BAD_BYTE);
        else
            ck_assert_int_eq(got, REQUEST_FINE);
    }
}

TEST(error_keeps_the_tag)
{
    ck_assert_int_eq(parse("#x.1 FOO"), REQUEST_UNKNOWN_VERB);
    assert_view(request.tag, request.tag_len, "x.1");
    ck_assert_int_eq(parse("#x.1 LOCK a\x01"), REQUEST_BAD_BYTE);
    assert_view(request.tag, request.tag_len, "x.1");
}

TEST(truncated_tag_is_ignored)
{
    request_tag("#abc", 4, &request);
    ck_assert_ptr_null(request.tag);
    request_tag("#abc ", 5, &request);
    assert_view(request.tag, request.tag_len, "abc");
    request_tag("#12345678901234567890123456789012 PING", 38, &request);
    ck_assert_uint_eq(request.tag_len, 32);
    request_tag("abc ", 4, &request);
    ck_assert_ptr_null(request.tag);
}

TEST(times_have_units_and_limits)
{
    static const struct {
        const char *word;
        int64_t ms; /* -1: refused */
    } rows[] = {
        {"0", 0},
        {"1", 1},
        {"250ms", 250},
        {"30s", 30000},
        {"5m", 300000},
        {"2h", 7200000},
        {"", -1},
        {"s", -1},
        {"+1", -1},
        {"1 s", -1},
        {"1d", -1},
        {"1mss", -1},
        {"999999999999999", -1},
        {"9223372036854", 9223372036854},
        {"9223372036855", -1},
        {"1000000000000000", -1},
        {"2562047h", 9223369200000},
        {"2562048h", -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t ms = -1;
        enum request_error got = request_parse_time(rows[i].word, strlen(rows[i].word), &ms);
        ck_assert_msg((got == REQUEST_FINE) == (rows[i].ms >= 0), "\"%s\"", rows[i].word);
        ck_assert_int_eq(ms, rows[i].ms);
    }
}

TEST(every_verb_and_error_has_its_word)
{
    for (enum verb verb = 0; verb < VERB_COUNT; verb++) {
        ck_assert_uint_gt(strlen(verb_word(verb)), 0);
        ck_assert_uint_eq(strspn(verb_word(verb), "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
                          strlen(verb_word(verb)));
        ck_assert_uint_gt(strlen(verb_text(verb)), 0);
        ck_assert_ptr_nonnull(verb_usage(verb));
    }
    ck_assert_str_eq(request_error_word(REQUEST_WAIT_RANGE), "wait-range");
    ck_assert_str_eq(request_error_word(REQUEST_SLOTS_RANGE), "slots-range");
    ck_assert_str_eq(request_error_word(REQUEST_LINE_TOO_LONG), "line-too-long");
}

static bool inside(const char *view, size_t len, const char *line, size_t line_len)
{
    return view >= line && view + len <= line + line_len;
}

/* A quarter of the pieces of a line are random bytes, the others are words of the protocol. All
 * views must lie inside the line. */
TEST(random_lines_give_views_inside_the_line)
{
    static const char *const words[] = {"LOCK", "UNLOCK", "EXTEND", "#t", "a", TOKEN, "1s", " "};
    uint32_t random = 4711;
    for (unsigned round = 0; round < 200000; round++) {
        char line[256];
        size_t len = 0;
        for (unsigned i = 0; i < 6; i++) {
            random = random * 1664525 + 1013904223;
            const char *word = words[random >> 24 & 7];
            if (random >> 30 == 0) {
                line[len++] = (char)(random >> 8);
            } else {
                memcpy(line + len, word, strlen(word));
                len += strlen(word);
                line[len++] = ' ';
            }
        }
        enum request_error got = request_parse(line, len, &limits, &request, &error);
        if (request.tag != NULL)
            ck_assert(inside(request.tag, request.tag_len, line, len));
        if (got != REQUEST_FINE)
            continue;
        if (request.resource != NULL)
            ck_assert(inside(request.resource, request.resource_len, line, len));
        if (request.token != NULL)
            ck_assert(inside(request.token, LIMIT_TOKEN, line, len));
        ck_assert_int_le(request.ttl_ms, limits.ttl_max_ms);
    }
}

/* --- the words of a RESP command --- */

static struct request_words words;

/* The words of the line, as request_parse() would split it. */
static void split_words(const char *line)
{
    words.count = 0;
    for (line += strspn(line, " "); *line != '\0'; line += strspn(line, " ")) {
        size_t len = strcspn(line, " ");
        if (words.count < REQUEST_WORDS_MAX)
            words.word[words.count] = (struct request_word){line, len};
        words.count++;
        line += len;
    }
}

static enum request_error check_words(void)
{
    memset(&error, 0, sizeof(error));
    return request_check_words(&words, &error);
}

TEST(words_of_every_request_are_accepted)
{
    static const char *const lines[] = {
        "LOCK a 1s HOLD LINGER WAIT 1s FENCE SLOTS 1000",
        "UNLOCK a\xc3\xa4 " TOKEN,
        "quit",
        "",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        split_words(lines[i]);
        ck_assert_int_eq(check_words(), REQUEST_FINE);
    }
}

TEST(a_command_has_no_tag)
{
    split_words("#1 PING");
    ck_assert_int_eq(check_words(), REQUEST_BAD_TAG);
    ck_assert_str_eq(error.text, "RESP has no tags: replies come in the order of commands");
    split_words("LOCK #1 1s");
    ck_assert_int_eq(check_words(), REQUEST_FINE);
}

TEST(an_empty_word_is_refused)
{
    for (unsigned i = 0; i < 3; i++) {
        char expected[64];
        split_words("LOCK a 30s");
        words.word[i].len = 0;
        ck_assert_int_eq(check_words(), REQUEST_BAD_ARGUMENTS);
        snprintf(expected, sizeof(expected), "word %u is empty", i + 1);
        ck_assert_str_eq(error.text, expected);
    }
}

TEST(every_word_that_is_kept_is_checked)
{
    for (unsigned i = 0; i < REQUEST_WORDS_MAX; i++) {
        char expected[128];
        split_words("LOCK a 1s FENCE HOLD LINGER WAIT 1s SLOTS 2 more words");
        words.word[i].at = "\x7f";
        words.word[i].len = 1;
        ck_assert_int_eq(check_words(), REQUEST_BAD_BYTE);
        snprintf(expected, sizeof(expected),
                 "byte 1 of word %u is 0x7f; spaces and control characters are not allowed", i + 1);
        ck_assert_str_eq(error.text, expected);
    }
}

/* The same bytes as in a line; a word has no spaces either. */
TEST(every_byte_of_a_word_is_valid_or_refused)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char resource[] = "aXb";
        char expected[128];
        resource[1] = (char)byte;
        split_words("STATUS abc");
        words.word[1].at = resource;
        enum request_error got = check_words();
        if (byte > 0x20 && byte != 0x7f) {
            ck_assert_int_eq(got, REQUEST_FINE);
            continue;
        }
        ck_assert_int_eq(got, REQUEST_BAD_BYTE);
        snprintf(expected, sizeof(expected),
                 "byte 2 of word 2 is 0x%02x; spaces and control characters are not allowed", byte);
        ck_assert_str_eq(error.text, expected);
    }
}

TEST(words_are_compared_in_either_case)
{
    const struct request_word word = {"heLLo!", 5};
    ck_assert(request_word_is(&word, "HELLO"));
    ck_assert(!request_word_is(&word, "HELLO!"));
    ck_assert(!request_word_is(&word, "HELL"));
}
