/*
 * Writes values of RESP, the protocol of Redis clients, to a struct text. Pure.
 *
 * RESP2 and RESP3 spell most values alike. RESP3 has its own null, maps, and push messages; RESP2
 * spells a map as an array of names and values.
 */
#ifndef PROTOCOL_RESP_TEXT_H
#define PROTOCOL_RESP_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/text.h"

/* What a client connection speaks. The daemon's requests and replies are the same in each. */
enum dialect {
    DIALECT_LINE,  /* the line protocol */
    DIALECT_RESP2, /* each connection that begins with RESP */
    DIALECT_RESP3, /* after HELLO 3 */
};

/* The header of an array of `count` values, of a map of `count` pairs, and of a push message of
 * `count` values (RESP3 only). The values follow. */
void resp_array(struct text *text, size_t count);
void resp_map(struct text *text, enum dialect dialect, size_t count);
void resp_push(struct text *text, size_t count);

void resp_bulk(struct text *text, const char *bytes, size_t len);
void resp_string(struct text *text, const char *string);
void resp_integer(struct text *text, int64_t number);
void resp_null(struct text *text, enum dialect dialect);

#endif
