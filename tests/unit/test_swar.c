/*
 * protocol/swar.h: every byte in every position, next to every other byte.
 */
#include "protocol/swar.h"
#include "tests/runner.h"

static bool is_blank(unsigned byte)
{
    return byte <= 0x20 || byte == 0x7f;
}

/* The positions of the matches as a bit set; the iteration takes them in order. */
static unsigned positions_of(uint64_t answers)
{
    unsigned positions = 0;
    for (; answers != 0; answers = swar_but_first(answers)) {
        unsigned position = 1u << swar_first(answers);
        ck_assert_uint_gt(position, positions);
        positions |= position;
    }
    return positions;
}

static bool is_hex(unsigned byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

TEST(blanks_and_hex_digits_are_found_as_by_a_loop)
{
    for (unsigned position = 0; position < 8; position++) {
        char bytes[9] = "0123abcd";
        for (unsigned one = 0; one < 256; one++) {
            for (unsigned next = 0; next < 256; next++) {
                bytes[position] = (char)one;
                bytes[(position + 1) % 8] = (char)next;
                unsigned blanks = (unsigned)is_blank(one) << position | (unsigned)is_blank(next)
                                                                            << (position + 1) % 8;
                ck_assert_uint_eq(positions_of(swar_are_blank(swar_load(bytes))), blanks);
                ck_assert_int_eq(swar_are_hex(bytes), is_hex(one) && is_hex(next));
            }
        }
    }
}

TEST(load_of_fewer_than_eight_bytes_fills_the_rest)
{
    for (size_t count = 0; count <= 8; count++) {
        char expected[9] = "--------";
        memcpy(expected, "a b\x01\x7f\xff c", count);
        ck_assert_uint_eq(swar_load_some("a b\x01\x7f\xff c", count, '-'), swar_load(expected));
    }
}
