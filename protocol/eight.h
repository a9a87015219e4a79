/*
 * Eight bytes at a time. What is asked of each of them is asked of all in a dozen instructions, by
 * arithmetic on one word, where a loop takes as many for every byte. The top bit of each byte is
 * its answer; in which order the bytes are does not matter. Pure.
 */
#ifndef PROTOCOL_EIGHT_H
#define PROTOCOL_EIGHT_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The same byte eight times. */
#define EIGHT_OF(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t eight_load(const char *bytes)
{
    uint64_t all;
    memcpy(&all, bytes, sizeof(all));
    return all;
}

/* Is one of them a control character, below 0x20 or 0x7f? */
static inline bool eight_have_control(const char *bytes)
{
    uint64_t all = eight_load(bytes);
    uint64_t zero_if_7f = all ^ EIGHT_OF(0x7f);
    /* What is subtracted borrows from the top bit where a byte is less; the lowest that does so has
     * nothing borrowed from it, so there is one if and only if there seems to be one. */
    uint64_t below_20 = (all - EIGHT_OF(0x20)) & ~all;
    uint64_t is_7f = (zero_if_7f - EIGHT_OF(1)) & ~zero_if_7f;
    return ((below_20 | is_7f) & EIGHT_OF(0x80)) != 0;
}

/* Which of them, if all are ASCII, are this character or a later one? */
static inline uint64_t eight_from(uint64_t all, char first)
{
    return all + EIGHT_OF(0x80u - (unsigned)first);
}

/* Are all of them lower-case hex digits? */
static inline bool eight_are_hex(const char *bytes)
{
    uint64_t all = eight_load(bytes);
    uint64_t digits = eight_from(all, '0') & ~eight_from(all, '9' + 1);
    uint64_t letters = eight_from(all, 'a') & ~eight_from(all, 'f' + 1);
    return ((digits | letters) & ~all & EIGHT_OF(0x80)) == EIGHT_OF(0x80);
}

/* Four bytes as eight lower-case hex digits. Here the order of the bytes does matter. */
static inline void eight_put_hex(const unsigned char *four, char *digits)
{
    uint32_t bytes;
    memcpy(&bytes, four, sizeof(bytes));
    bytes = le32toh(bytes);
    /* Apart, so that each has sixteen bits, and then its upper half before its lower one. */
    uint64_t all = (bytes | (uint64_t)bytes << 16) & 0x0000ffff0000ffff;
    all = (all | all << 8) & 0x00ff00ff00ff00ff;
    all = (all >> 4 | all << 8) & EIGHT_OF(15);
    /* Those of 10 and more are letters; 6 adds a fifth bit to them. */
    uint64_t letters = (all + EIGHT_OF(6)) >> 4 & EIGHT_OF(1);
    all += EIGHT_OF('0') + letters * ('a' - 10 - '0');
    all = htole64(all);
    memcpy(digits, &all, sizeof(all));
}

#endif
