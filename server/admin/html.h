/*
 * HTML text in a buffer of fixed size: escaped untrusted bytes, and durations in readable units.
 * Pure.
 */
#ifndef SERVER_ADMIN_HTML_H
#define SERVER_ADMIN_HTML_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/text.h"

/* Untrusted bytes in readable form (TEXT_EXACT), safe in an element or a quoted attribute.
 * Truncated to `most` bytes followed by "...". */
void html_bytes(struct text *text, const char *bytes, size_t len, size_t most);
void html_string(struct text *text, const char *string);

/* "0.4 s", "12 s", "3 min 20 s", "5 h 2 min", "4 d 3 h". */
void html_duration(struct text *text, int64_t ms);

#endif
