/*
 * protocol/swar.h: every byte in every place, beside every other.
 */
#include "protocol/swar.h"
#include "tests/runner.h"

static bool is_blank(unsigned byte)
{
    return byte <= 0x20 || byte == 0x7f;
}

/* The places of the answers, a bit for each, as they are taken one after another. */
static unsigned places_of(uint64_t answers)
{
    unsigned places = 0;
    for (; answers != 0; answers = swar_but_first(answers)) {
        unsigned place = 1u << swar_first(answers);
        ck_assert_uint_gt(place, places);
        places |= place;
    }
    return places;
}

static bool is_hex(unsigned byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

START_TEST(finds_blanks_and_hex_digits_as_a_loop_does)
{
    for (unsigned place = 0; place < 8; place++) {
        char bytes[9] = "0123abcd";
        for (unsigned one = 0; one < 256; one++) {
            for (unsigned next = 0; next < 256; next++) {
                bytes[place] = (char)one;
                bytes[(place + 1) % 8] = (char)next;
                unsigned blanks = (unsigned)is_blank(one) << place | (unsigned)is_blank(next)
                                                                         << (place + 1) % 8;
                ck_assert_uint_eq(places_of(swar_are_blank(swar_load(bytes))), blanks);
                ck_assert_int_eq(swar_are_hex(bytes), is_hex(one) && is_hex(next));
            }
        }
    }
}
END_TEST

START_TEST(loads_fewer_than_eight_and_puts_others_behind_them)
{
    for (size_t count = 0; count <= 8; count++) {
        char expected[9] = "--------";
        memcpy(expected, "a b\x01\x7f\xff c", count);
        ck_assert_uint_eq(swar_load_some("a b\x01\x7f\xff c", count, '-'), swar_load(expected));
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("eight");
    TCase *tests = tcase_create("eight");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, finds_blanks_and_hex_digits_as_a_loop_does);
    tcase_add_test(tests, loads_fewer_than_eight_and_puts_others_behind_them);
    suite_add_tcase(suite, tests);
    return suite;
}
