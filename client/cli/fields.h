/*
 * The lines of a listing, "key=value key=value", taken apart. Pure.
 */
#ifndef CLIENT_CLI_FIELDS_H
#define CLIENT_CLI_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

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

/* Does the key end so? "_ms" and "_us" are the units of durations. */
bool field_key_ends(const struct field *field, const char *end);

/* Have both lines the same keys in the same order? */
bool fields_alike(const char *line, const char *other);

#endif
