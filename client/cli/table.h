/*
 * A listing for people: columns that are aligned, under a header.
 *
 *     RESOURCE  TOKEN     CLIENT  NAME  SINCE  LEFT   HOLD  WAITERS
 *     deploy    6c7bac0d       7  -     8.1s   21.8s  no          2
 *
 * Times are rounded and have their unit, and what could make a terminal do anything is written as
 * its bytes, "\x9b". Lines with other keys than those before begin another table; one that stands
 * alone among others has its fields below each other. Pure.
 */
#ifndef CLIENT_CLI_TABLE_H
#define CLIENT_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* --- the lines of a listing, "key=value key=value", taken apart --- */

/* Views of the line. */
struct field {
    const char *key;
    size_t key_len;
    const char *value;
    size_t value_len;
};

/* Take the next field off the text; false at its end. A word without "=" has an empty value. */
bool field_next(const char **text, struct field *field);

/* What its value is. The name of a lock may be "12" or "yes", and a token may have no letter among
 * its digits: it is the key that tells. */
enum field_kind {
    FIELD_TEXT,
    FIELD_NUMBER, /* an integer, as JSON writes it */
    FIELD_TRUTH,  /* yes or no */
    FIELD_NONE,   /* "-": there is none */
};
enum field_kind field_kind(const struct field *field);

bool field_has_key(const struct field *field, const char *key);
bool field_has_value(const struct field *field, const char *value);

/* --- in columns --- */

/* The lines are those of a listing, as the daemon sends them. */
void table_print(FILE *out, const char *const *lines, size_t count, bool colours);

#endif
