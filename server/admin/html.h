/*
 * Text for a browser, in a buffer of fixed size: bytes that anybody may have chosen, and durations
 * as people say them. Pure.
 */
#ifndef SERVER_ADMIN_HTML_H
#define SERVER_ADMIN_HTML_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/text.h"

/* Bytes of others as people can read them (TEXT_EXACT), in an element or in a quoted attribute;
 * "..." where they are cut after `most` of them. */
void html_bytes(struct text *text, const char *bytes, size_t len, size_t most);
void html_string(struct text *text, const char *string);

/* "0.4 s", "12 s", "3 min 20 s", "5 h 2 min", "4 d 3 h". */
void text_ago(struct text *text, int64_t ms);

#endif
