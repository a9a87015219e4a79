#include "protocol/row.h"

#include <stdbool.h>
#include <string.h>

/* Begin a field. Whether its value has to follow as a RESP value. */
static bool begin_field(struct row *row, const char *name)
{
    bool first = row->fields == 0;
    row->fields++;
    if (row->dialect != DIALECT_LINE) {
        resp_string(&row->text, name);
        return true;
    }
    if (!first)
        text_byte(&row->text, ' ');
    text_string(&row->text, name);
    text_byte(&row->text, '=');
    return false;
}

void row_bytes(struct row *row, const char *name, const char *value, size_t len)
{
    if (begin_field(row, name))
        resp_bulk(&row->text, value, len);
    else
        text_bytes(&row->text, value, len);
}

void row_string(struct row *row, const char *name, const char *value)
{
    row_bytes(row, name, value, strlen(value));
}

void row_number(struct row *row, const char *name, int64_t number)
{
    if (begin_field(row, name))
        resp_integer(&row->text, number);
    else
        text_number(&row->text, number);
}

void row_none(struct row *row, const char *name)
{
    if (begin_field(row, name))
        resp_null(&row->text, row->dialect);
    else
        text_byte(&row->text, '-');
}

void row_optional(struct row *row, const char *name, const char *value)
{
    if (value[0] != '\0')
        row_string(row, name, value);
    else
        row_none(row, name);
}

void row_array(struct row *row, const char *name, size_t count)
{
    begin_field(row, name);
    resp_array(&row->text, count);
}

void row_header(const struct row *row, struct text *header)
{
    resp_map(header, row->dialect, row->fields);
}

void row_clear(struct row *row)
{
    row->text.len = 0;
    row->fields = 0;
}
