/*
 * protocol/text.h: numbers as text.
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

START_TEST(digits_on_both_sides_of_each_power_of_ten)
{
    uint64_t power = 1;
    for (unsigned i = 0; i < TEXT_DIGITS; i++, power *= 10) {
        assert_digits(power - 1);
        assert_digits(power);
        assert_digits(power + 1);
    }
    assert_digits(UINT64_MAX);
}
END_TEST

START_TEST(numbers_have_their_sign_and_are_cut_like_all_text)
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
END_TEST

START_TEST(every_byte_has_its_two_hex_digits_in_every_place)
{
    enum { COUNT = 37 };
    for (unsigned byte = 0; byte < 256; byte++)
        for (unsigned place = 0; place < COUNT; place++) {
            unsigned char bytes[COUNT];
            char digits[2 * COUNT + 1] = "", expected[2 * COUNT + 1] = "";
            for (unsigned i = 0; i < COUNT; i++)
                bytes[i] = (unsigned char)(i == place ? byte : 0x1f * i);
            text_hex(bytes, COUNT, digits);
            for (unsigned i = 0; i < COUNT; i++)
                snprintf(expected + 2 * (size_t)i, 3, "%02x", bytes[i]);
            ck_assert_str_eq(digits, expected);
        }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("text");
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, digits_on_both_sides_of_each_power_of_ten);
    tcase_add_test(tests, numbers_have_their_sign_and_are_cut_like_all_text);
    tcase_add_test(tests, every_byte_has_its_two_hex_digits_in_every_place);
    suite_add_tcase(suite, tests);
    return suite;
}
