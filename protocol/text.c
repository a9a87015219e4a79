#include "protocol/text.h"

#include <string.h>

void text_cut(struct text *text, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && text->len < text->size; i++)
        text_byte(text, bytes[i]);
}

/* Two at a time: a division takes longer than all the rest. */
static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static void put_pair(char *to, uint64_t below_100)
{
    memcpy(to, pairs + below_100 * 2, 2);
}

/* As lengths in commands are. */
static size_t digits_below_100(uint64_t number, char *to)
{
    if (number < 10) {
        to[0] = (char)('0' + number);
        return 1;
    }
    put_pair(to, number);
    return 2;
}

/* Not inlined: whoever has a shorter number would save the registers for it. */
__attribute__((noinline)) static size_t many_digits(uint64_t number, char *to)
{
    size_t count = text_digits(number / 10000, to);
    put_pair(to + count, number / 100 % 100);
    put_pair(to + count + 2, number % 100);
    return count + 4;
}

size_t text_digits(uint64_t number, char *to)
{
    if (number < 100)
        return digits_below_100(number, to);
    if (number >= 10000)
        return many_digits(number, to);
    size_t count = digits_below_100(number / 100, to);
    put_pair(to + count, number % 100);
    return count + 2;
}

/* Not inlined: for an array of its own, text_number() would guard its stack with every number. */
__attribute__((noinline)) static void cut_digits(struct text *text, uint64_t number)
{
    char digits[TEXT_DIGITS];
    text_cut(text, digits, text_digits(number, digits));
}

void text_number(struct text *text, int64_t number)
{
    if (number < 0)
        text_byte(text, '-');
    /* Unsigned, so that the smallest number has a positive counterpart. */
    uint64_t positive = number < 0 ? -(uint64_t)number : (uint64_t)number;
    if (text->size - text->len >= TEXT_DIGITS)
        text->len += text_digits(positive, text->buf + text->len);
    else
        cut_digits(text, positive);
}

static char hex_digit(unsigned half)
{
    return (char)('0' + half + (half > 9 ? 'a' - '9' - 1 : 0));
}

void text_hex(const unsigned char *bytes, size_t count, char *digits)
{
    for (size_t i = 0; i < count; i++) {
        digits[2 * i] = hex_digit(bytes[i] >> 4);
        digits[2 * i + 1] = hex_digit(bytes[i] & 15);
    }
}

void text_quoted(struct text *text, const char *bytes, size_t len, size_t most)
{
    text_byte(text, '"');
    for (size_t i = 0; i < len && i < most; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        char escaped[4] = {'\\', 'x'};
        text_hex(&byte, 1, escaped + 2);
        if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\')
            text_byte(text, bytes[i]);
        else
            text_bytes(text, escaped, sizeof(escaped));
    }
    text_string(text, len > most ? "...\"" : "\"");
}

void text_duration_ms(struct text *text, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (ms % units[i].ms != 0)
        i++;
    text_number(text, ms / units[i].ms);
    text_string(text, units[i].unit);
}
