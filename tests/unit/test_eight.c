/*
 * protocol/eight.h: every byte in every place, beside every other.
 */
#include <stdio.h>

#include "protocol/eight.h"
#include "tests/runner.h"

static bool is_control(unsigned byte)
{
    return byte < 0x20 || byte == 0x7f;
}

static bool is_hex(unsigned byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

START_TEST(finds_controls_and_hex_digits_as_a_loop_does)
{
    for (unsigned place = 0; place < 8; place++) {
        char bytes[9] = "0123abcd";
        for (unsigned one = 0; one < 256; one++) {
            for (unsigned next = 0; next < 256; next++) {
                bytes[place] = (char)one;
                bytes[(place + 1) % 8] = (char)next;
                ck_assert_int_eq(eight_have_control(bytes), is_control(one) || is_control(next));
                ck_assert_int_eq(eight_are_hex(bytes), is_hex(one) && is_hex(next));
            }
        }
    }
}
END_TEST

START_TEST(writes_every_byte_in_every_place_in_hex)
{
    for (unsigned byte = 0; byte < 256; byte++)
        for (unsigned place = 0; place < 4; place++) {
            unsigned char four[4] = {0x5a, 0xa5, 0xf0, 0x0f};
            char digits[9] = "", expected[9];
            four[place] = (unsigned char)byte;
            eight_put_hex(four, digits);
            snprintf(expected, sizeof(expected), "%02x%02x%02x%02x", four[0], four[1], four[2],
                     four[3]);
            ck_assert_str_eq(digits, expected);
        }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("eight");
    TCase *tests = tcase_create("eight");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, finds_controls_and_hex_digits_as_a_loop_does);
    tcase_add_test(tests, writes_every_byte_in_every_place_in_hex);
    suite_add_tcase(suite, tests);
    return suite;
}
