#include "protocol/resp_text.h"

#include <string.h>

static void put_header(struct text *text, char kind, int64_t number)
{
    text_byte(text, kind);
    text_number(text, number);
    text_string(text, "\r\n");
}

void resp_array(struct text *text, size_t count)
{
    put_header(text, '*', (int64_t)count);
}

void resp_map(struct text *text, enum dialect dialect, size_t count)
{
    if (dialect == DIALECT_RESP3)
        put_header(text, '%', (int64_t)count);
    else
        resp_array(text, 2 * count);
}

void resp_push(struct text *text, size_t count)
{
    put_header(text, '>', (int64_t)count);
}

void resp_bulk(struct text *text, const char *bytes, size_t len)
{
    put_header(text, '$', (int64_t)len);
    text_bytes(text, bytes, len);
    text_string(text, "\r\n");
}

void resp_string(struct text *text, const char *string)
{
    resp_bulk(text, string, strlen(string));
}

void resp_integer(struct text *text, int64_t number)
{
    put_header(text, ':', number);
}

void resp_null(struct text *text, enum dialect dialect)
{
    text_string(text, dialect == DIALECT_RESP3 ? "_\r\n" : "$-1\r\n");
}
