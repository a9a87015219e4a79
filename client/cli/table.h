/*
 * Prints a listing as a table with a header and aligned columns.
 *
 *     RESOURCE  TOKEN     CLIENT  NAME  SINCE  LEFT   HOLD  WAITERS  SLOTS
 *     deploy    6c7bac0d       7  -     8.1s   21.8s  no          2  -
 *
 * Times are rounded down and have a unit. Bytes that a terminal might interpret are escaped, as
 * "\x9b". If the keys of a line differ from those of the line before, the line starts a new table.
 * If there are several tables, a table of one line is printed with one field per row. Pure.
 */
#ifndef CLIENT_CLI_TABLE_H
#define CLIENT_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* --- fields of a line, "key=value key=value" --- */

/* Views into the line. */
struct field {
    const char *key;
    size_t key_len;
    const char *value;
    size_t value_len;
};

/* Takes the next field off the text; false at its end. A word without "=" has an empty value. */
bool field_next(const char **text, struct field *field);

/* The type of a value. It also depends on the key: a resource can be named "12" or "yes", and a
 * token can consist of decimal digits only. */
enum field_kind {
    FIELD_TEXT,
    FIELD_NUMBER, /* an integer, as JSON writes it */
    FIELD_TRUTH,  /* "yes" or "no" */
    FIELD_NONE,   /* "-": no value */
};
enum field_kind field_kind(const struct field *field);

bool field_has_key(const struct field *field, const char *key);
bool field_has_value(const struct field *field, const char *value);

/* --- the table --- */

/* Prints lines of a listing, in the format of the daemon. */
void table_print(FILE *out, const char *const *lines, size_t count, bool colours);

#endif
