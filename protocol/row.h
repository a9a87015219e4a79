/*
 * Writes one row of a listing, a sequence of named values, in the dialect of the client. Pure.
 *
 * In the line protocol a row is a line of name=value words. In RESP it is a map; row_header()
 * writes its header, which comes before the fields.
 */
#ifndef PROTOCOL_ROW_H
#define PROTOCOL_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/resp_text.h"

struct row {
    struct text text;
    enum dialect dialect;
    unsigned fields;
};

/* Values of the line protocol must have no spaces. */
void row_bytes(struct row *row, const char *name, const char *value, size_t len);
void row_string(struct row *row, const char *name, const char *value);
void row_number(struct row *row, const char *name, int64_t number);

/* No value: "-" in the line protocol, null in RESP. row_optional(): "" counts as no value. */
void row_none(struct row *row, const char *name);
void row_optional(struct row *row, const char *name, const char *value);

/* Begin an array of `count` values, which follow. RESP only. */
void row_array(struct row *row, const char *name, size_t count);

/* The header of the row's map. RESP only. */
void row_header(const struct row *row, struct text *header);

/* Remove all fields. */
void row_clear(struct row *row);

#endif
