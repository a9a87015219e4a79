/*
 * Text put together in a buffer of fixed size: what does not fit is cut, and nothing overflows.
 * Meant for lines of the protocol, where printf would cost more than the rest of the request.
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

/* As much of them as fits. */
void text_cut(struct text *text, const char *bytes, size_t len);

/* Here, and so is the next: where a length is known when this is compiled, a few moves are left. */
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

void text_number(struct text *text, int64_t number);

/* The decimal digits of a number, without a NUL; returns how many. `to` holds TEXT_DIGITS. */
enum { TEXT_DIGITS = 20 };
size_t text_digits(uint64_t number, char *to);

/* How many of the first bytes are decimal digits, and the number they are; UINT64_MAX if they are
 * more than TEXT_NUMBER_DIGITS. */
enum { TEXT_NUMBER_DIGITS = 19 };
size_t text_take_number(const char *bytes, size_t len, uint64_t *number);

/* Bytes as twice as many lower-case hex digits, without a NUL. */
void text_hex(const unsigned char *bytes, size_t count, char *digits);

/* As printf; one call adds 1023 bytes at most. Never for bytes from outside. */
__attribute__((format(printf, 2, 3))) void text_format(struct text *text, const char *form, ...);

/* The bytes of the character at `at`, 1 to 4, or 0 where none begins there: also for overlong
 * forms, surrogates and what is beyond U+10FFFF. */
size_t utf8_character(const char *at, size_t len);

/* The same, and 0 for characters that show nothing, or change what stands beside them: controls,
 * line separators, joiners, fillers, marks and overrides of direction. What is left, people may be
 * shown; two names can look the same all the same. */
size_t utf8_visible(const char *at, size_t len);

/* How bytes from outside are written; what a style does not write as it is becomes \x1b. */
enum text_style {
    TEXT_ASCII,   /* printable ASCII as it is */
    TEXT_QUOTED,  /* ... except for quotes and backslashes: for a text in quotes */
    TEXT_LOG,     /* ... except for these, which become \" and \\ */
    TEXT_JSON,    /* UTF-8 as it is; controls, and bytes that are none, as \u001b; \" and \\ */
    TEXT_VISIBLE, /* UTF-8 that shows, as it is: see utf8_visible() */
    TEXT_EXACT,   /* ... except for backslashes: no two texts look the same by their escapes */
};

/* Returns how many bytes were taken: fewer than `len` if there is no room for all of them. */
size_t text_escape(struct text *text, const char *bytes, size_t len, enum text_style style);

/* TEXT_QUOTED, in quotes, and cut after `most` bytes. */
void text_quoted(struct text *text, const char *bytes, size_t len, size_t most);

/* A duration as the protocol and the configuration have it, in the largest unit that says it
 * exactly: "250us", "50ms", "90s", "2m", "1h". */
void text_duration(struct text *text, int64_t ns);

/* How many nanoseconds one of these units has; 0: it is none. */
int64_t text_unit_ns(const char *unit, size_t len);

/*
 * An error a person reads: what was wrong, and what would be right. One line, without a final full
 * stop or line feed, and safe to print: bytes from outside are already escaped in it.
 */
struct error {
    char text[240];
};

/* As printf. False, for the caller to return. */
__attribute__((format(printf, 2, 3))) bool error_set(struct error *error, const char *form, ...);

/* Its text, to be put together; it always ends in a NUL. */
struct text error_begin(struct error *error);

#endif
