/*
 * protocol/text.h: numbers and untrusted bytes as text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/text.h"
#include "tests/runner.h"

static void assert_digits(uint64_t number)
{
    char expected[TEXT_DIGITS + 1];
    char digits[TEXT_DIGITS];
    int len = snprintf(expected, sizeof(expected), "%" PRIu64, number);
    ck_assert_uint_eq(text_digits(number, digits), (unsigned)len);
    ck_assert_mem_eq(digits, expected, (size_t)len);
}

TEST(digits_are_right_around_each_power_of_ten)
{
    uint64_t power = 1;
    for (unsigned i = 0; i < TEXT_DIGITS; i++, power *= 10) {
        assert_digits(power - 1);
        assert_digits(power);
        assert_digits(power + 1);
    }
    assert_digits(UINT64_MAX);
}

TEST(numbers_have_their_sign_and_are_truncated_like_all_text)
{
    char buf[64];
    struct text text = {.buf = buf, .size = 32};
    text_number(&text, INT64_MIN);
    text_number(&text, 7);
    ck_assert_uint_eq(text.len, 21);
    ck_assert_mem_eq(buf, "-92233720368547758087", 21);
    text_number(&text, INT64_MAX);
    ck_assert_uint_eq(text.len, 32);
    ck_assert_mem_eq(buf + 21, "92233720368", 11);
}

TEST(every_byte_has_two_hex_digits_in_every_position)
{
    enum { COUNT = 37 };
    for (unsigned byte = 0; byte < 256; byte++)
        for (unsigned position = 0; position < COUNT; position++) {
            unsigned char bytes[COUNT];
            char digits[2 * COUNT + 1] = "", expected[2 * COUNT + 1] = "";
            for (unsigned i = 0; i < COUNT; i++)
                bytes[i] = (unsigned char)(i == position ? byte : 0x1f * i);
            text_hex(bytes, COUNT, digits);
            for (unsigned i = 0; i < COUNT; i++)
                snprintf(expected + 2 * (size_t)i, 3, "%02x", bytes[i]);
            ck_assert_str_eq(digits, expected);
        }
}

static const char *escape(const char *bytes, size_t len, enum text_style style)
{
    static char buf[64];
    struct text text = {.buf = buf, .size = sizeof(buf) - 1};
    ck_assert_uint_eq(text_escape(&text, bytes, len, style), len);
    buf[text.len] = '\0';
    return buf;
}

TEST(each_style_escapes_bytes_that_could_mislead_its_reader)
{
    static const char bytes[] = "a\"\\\n\0\xc3\xbc\xc2\x9b\xff";
    static const char *const escaped[] = {
        [TEXT_ASCII] = "a\"\\\\x0a\\x00\\xc3\\xbc\\xc2\\x9b\\xff",
        [TEXT_QUOTED] = "a\\x22\\x5c\\x0a\\x00\\xc3\\xbc\\xc2\\x9b\\xff",
        [TEXT_LOG] = "a\\\"\\\\\\x0a\\x00\\xc3\\xbc\\xc2\\x9b\\xff",
        [TEXT_JSON] = "a\\\"\\\\\\u000a\\u0000\xc3\xbc\\u009b\\u00ff",
        [TEXT_VISIBLE] = "a\"\\\\x0a\\x00\xc3\xbc\\xc2\\x9b\\xff",
        [TEXT_EXACT] = "a\"\\x5c\\x0a\\x00\xc3\xbc\\xc2\\x9b\\xff",
    };
    for (unsigned style = TEXT_ASCII; style <= TEXT_EXACT; style++)
        ck_assert_str_eq(escape(bytes, sizeof(bytes) - 1, style), escaped[style]);
}

TEST(every_byte_is_printable_once_escaped)
{
    for (int byte = 0; byte < 256; byte++) {
        char one = (char)byte;
        const char *escaped = escape(&one, 1, TEXT_EXACT);
        for (const char *at = escaped; *at != '\0'; at++)
            ck_assert(*at >= 0x20 && *at < 0x7f);
        ck_assert_uint_eq(strlen(escaped), byte >= 0x20 && byte < 0x7f && byte != '\\' ? 1 : 4);
    }
}

TEST(no_escape_is_cut_in_two)
{
    char buf[9];
    struct text text = {.buf = buf, .size = sizeof(buf)};
    ck_assert_uint_eq(text_escape(&text, "a\xff\xff\xff", 4, TEXT_EXACT), 3);
    ck_assert_uint_eq(text.len, 9);
    text.len = 4;
    ck_assert_uint_eq(text_escape(&text, "\xff\xff", 2, TEXT_EXACT), 1);
    ck_assert_uint_eq(text.len, 8);
}

TEST(leading_digits_are_a_number_that_saturates)
{
    static const struct {
        const char *text;
        size_t digits;
        uint64_t number;
    } rows[] = {
        {"", 0, 0},
        {"-1", 0, 0},
        {"007", 3, 7},
        {"42ms", 2, 42},
        {":1", 0, 0},
        {"9999999999999999999", 19, 9999999999999999999u},
        {"/1", 0, 0},
        {"00000000000000000001", 20, UINT64_MAX},
        {"1234567", 7, 1234567},
        {"99999999999999999999999", 23, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t number = 1;
        size_t len = strlen(rows[i].text);
        ck_assert_uint_eq(text_take_number(rows[i].text, len, &number), rows[i].digits);
        ck_assert_uint_eq(number, rows[i].number);
    }
}

TEST(a_word_ends_before_a_space_or_a_control_character)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const char bytes[] = {'a', (char)byte, 'b'};
        bool ends = byte <= ' ' || byte == 0x7f;
        ck_assert_uint_eq(text_word_len(bytes, 3), ends ? 1 : 3);
        ck_assert_uint_eq(text_word_len(bytes, 1), 1);
    }
}
