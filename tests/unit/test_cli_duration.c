/*
 * Durations and signals on the command line.
 */
#include <signal.h>
#include <string.h>

#include "client/cli/duration.h"
#include "client/cli/signals.h"
#include "tests/runner.h"

static void check_ms(const char *text, int64_t expected)
{
    struct error error;
    int64_t ms = -1;
    ck_assert_msg(duration_parse(text, &ms, &error), "%s: %s", text, error.text);
    ck_assert_int_eq(ms, expected);
}

static void check_refused(const char *text, const char *why)
{
    struct error error;
    int64_t ms;
    ck_assert_msg(!duration_parse(text, &ms, &error), "%s is accepted", text);
    ck_assert_str_eq(error.text, why);
}

TEST(durations_have_units)
{
    check_ms("30s", 30000);
    check_ms("500ms", 500);
    check_ms("5m", 300000);
    check_ms("1h", 3600000);
    check_ms("24h", 24 * 3600000);
}

TEST(zero_needs_no_unit)
{
    check_ms("0", 0);
    check_ms("0s", 0);
    check_ms("00", 0);
}

TEST(number_without_a_unit_is_refused_with_suggestions)
{
    check_refused("30", "30 has no unit: 30s or 30ms?");
    check_refused("5000", "5000 has no unit: 5000s or 5000ms?");
}

TEST(malformed_duration_is_refused_with_examples)
{
    check_refused("", "\"\" is not a time: write 30s, 500ms, 5m or 1h");
    check_refused("soon", "\"soon\" is not a time: write 30s, 500ms, 5m or 1h");
    check_refused("-5s", "\"-5s\" is not a time: write 30s, 500ms, 5m or 1h");
    check_refused("5 s", "\"5 s\" is not a time: write 30s, 500ms, 5m or 1h");
    check_refused("5d", "\"5d\" is not a time: write 30s, 500ms, 5m or 1h");
    check_refused("5S", "\"5S\" is not a time: write 30s, 500ms, 5m or 1h");
    check_refused("1.5s", "\"1.5s\" is not a whole number: write 1500ms for 1.5s");
    check_refused("\033[2J", "\"\\x1b[2J\" is not a time: write 30s, 500ms, 5m or 1h");
}

TEST(too_long_duration_is_refused)
{
    check_refused("999999999999999h", "\"999999999999999h\" is too long: the limit is ten years");
    check_refused("87601h", "\"87601h\" is too long: the limit is ten years");
    check_refused("9999999999999999ms",
                  "\"9999999999999999ms\" is too long: the limit is ten years");
}

TEST(overlong_word_is_refused)
{
    char word[5000];
    struct error error;
    int64_t ms;
    memset(word, '9', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    ck_assert(!duration_parse(word, &ms, &error));
    ck_assert_uint_lt(strlen(error.text), sizeof(error.text));
    word[sizeof(word) - 2] = 'x';
    ck_assert(!duration_parse(word, &ms, &error));
    memset(word, '\033', sizeof(word) - 1);
    ck_assert(!duration_parse(word, &ms, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "...\" is not a time"));
}

static void check_printed(int64_t ms, const char *expected)
{
    char buf[DURATION_PRINTED];
    duration_print(ms, buf);
    ck_assert_str_eq(buf, expected);
}

TEST(durations_are_printed_with_at_most_two_units)
{
    check_printed(0, "0ms");
    check_printed(999, "999ms");
    check_printed(1000, "1.0s");
    check_printed(12399, "12.3s");
    check_printed(59999, "59.9s");
    check_printed(60000, "1m0s");
    check_printed(125000, "2m5s");
    check_printed(3600000, "1h0m");
    check_printed(3 * 3600000 + 12 * 60000 + 59999, "3h12m");
    check_printed(52 * 3600000, "2d4h");
    check_printed(INT64_MAX, "106751991167d7h");
}

TEST(short_durations_are_printed_in_microseconds)
{
    char buf[DURATION_PRINTED];
    duration_print_us(649, buf);
    ck_assert_str_eq(buf, "649us");
    duration_print_us(1298, buf);
    ck_assert_str_eq(buf, "1.2ms");
    duration_print_us(2500000, buf);
    ck_assert_str_eq(buf, "2.5s");
}

TEST(signals_have_names_and_numbers)
{
    static const char *const words[] = {"TERM", "SIGTERM", "term", "sigterm", "15"};
    struct error error;
    int number = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        ck_assert(signal_parse(words[i], &number, &error));
        ck_assert_int_eq(number, SIGTERM);
    }
    ck_assert(signal_parse("INT", &number, &error));
    ck_assert_int_eq(number, SIGINT);
}

TEST(unknown_signal_is_refused_with_a_suggestion)
{
    struct error error;
    int number;
    ck_assert(!signal_parse("TREM", &number, &error));
    ck_assert_str_eq(error.text, "\"TREM\" is not a signal; did you mean TERM?");
    ck_assert(!signal_parse("sigqiut", &number, &error));
    ck_assert_str_eq(error.text, "\"sigqiut\" is not a signal; did you mean QUIT?");
    static const char *const none[] = {"", "0", "-1", "32", "015", "SIG", "everything-ends"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        ck_assert(!signal_parse(none[i], &number, &error));
        ck_assert_ptr_nonnull(strstr(error.text, "write TERM, INT or 15"));
    }
}
