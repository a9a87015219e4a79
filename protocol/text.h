/*
 * Writes text to a buffer of fixed size. Text that does not fit is cut; nothing overflows. The
 * daemon writes the lines of the protocol with these functions, since printf would cost more than
 * the rest of a request.
 */
#ifndef PROTOCOL_TEXT_H
#define PROTOCOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    char *buf;
    size_t size;
    size_t len;
};

static inline void text_byte(struct text *text, char byte)
{
    if (text->len < text->size)
        text->buf[text->len++] = byte;
}

/* Append as many bytes as fit. */
void text_cut(struct text *text, const char *bytes, size_t len);

/* This function and text_string() are inline: for a length known at compile time, only a few moves
 * are left. */
static inline void text_bytes(struct text *text, const char *bytes, size_t len)
{
    if (len > text->size - text->len) {
        text_cut(text, bytes, len);
        return;
    }
    memcpy(text->buf + text->len, bytes, len);
    text->len += len;
}

static inline void text_string(struct text *text, const char *string)
{
    text_bytes(text, string, strlen(string));
}

/* Append the number in decimal. */
void text_number(struct text *text, int64_t number);

/* Write the decimal digits of a number, without a NUL, and return their count. `to` must hold
 * TEXT_DIGITS bytes. */
enum { TEXT_DIGITS = 20 };
size_t text_digits(uint64_t number, char *to);

/* Parse the leading decimal digits. Returns their count; *number is UINT64_MAX if there are more
 * than TEXT_NUMBER_DIGITS. */
enum { TEXT_NUMBER_DIGITS = 19 };
size_t text_take_number(const char *bytes, size_t len, uint64_t *number);

/* The number of leading bytes that can be part of a word: all except spaces and control
 * characters. */
size_t text_word_len(const char *bytes, size_t len);

/* Write `count` bytes as lower-case hex digits, two for each, without a NUL. */
void text_hex(const unsigned char *bytes, size_t count, char *digits);

/* Append like printf, at most 1023 bytes for each call. Do not use this function for bytes from
 * outside, which need text_escape(). */
__attribute__((format(printf, 2, 3))) void text_format(struct text *text, const char *form, ...);

/* Whether the byte is the second or a later byte of a UTF-8 character. To count characters, count
 * all other bytes. */
static inline bool utf8_continues(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The length of the UTF-8 character at `at`, 1 to 4 bytes; 0 if no valid character begins there. An
 * overlong form, a surrogate and a code above U+10FFFF are invalid. */
size_t utf8_character(const char *at, size_t len);

/* Like utf8_character(), but 0 for characters that are invisible or change their neighbours:
 * controls, line separators, joiners, fillers, and marks and overrides of direction. The remaining
 * characters are safe to show. Two different names can still look the same. */
size_t utf8_visible(const char *at, size_t len);

/* How text_escape() writes bytes from outside: each style names the bytes that stay unchanged. All
 * others become an escape such as \x1b. */
enum text_style {
    TEXT_ASCII,   /* printable ASCII unchanged */
    TEXT_QUOTED,  /* printable ASCII unchanged, except quotes and backslashes */
    TEXT_LOG,     /* printable ASCII unchanged; quotes and backslashes as \" and \\ */
    TEXT_JSON,    /* UTF-8 unchanged; controls and invalid bytes as \u001b; \" and \\ */
    TEXT_VISIBLE, /* visible UTF-8 unchanged: see utf8_visible() */
    TEXT_EXACT,   /* visible UTF-8 unchanged, except backslashes: the result is unambiguous */
};

/* Append bytes in a style. Returns the number of bytes taken: fewer than `len` if the text is full.
 */
size_t text_escape(struct text *text, const char *bytes, size_t len, enum text_style style);

/* Append the first `most` bytes as TEXT_QUOTED, in quotes. */
void text_quoted(struct text *text, const char *bytes, size_t len, size_t most);

/* Append a duration in the largest unit that expresses it exactly, as the protocol and the
 * configuration write it: "250us", "50ms", "90s", "2m", "1h". */
void text_duration(struct text *text, int64_t ns);

/* The nanoseconds of a unit ("us", "ms", "s", "m", "h"); 0 if the unit is unknown. */
int64_t text_unit_ns(const char *unit, size_t len);

/*
 * An error message for people: what is wrong, and what would be right. It is one line without a
 * final full stop or line feed, ends with a NUL, and is safe to print, since bytes from outside are
 * escaped.
 */
struct error {
    char text[240];
};

/* Set the message like printf. Returns false, for the caller to return. */
__attribute__((format(printf, 2, 3))) bool error_set(struct error *error, const char *form, ...);

/* Clear the message and return a struct text that writes to it. The message always ends with a NUL.
 */
struct text error_begin(struct error *error);

#endif
