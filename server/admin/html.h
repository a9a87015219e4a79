/*
 * Text for a browser, in a buffer of fixed size: printf, bytes that anybody may have chosen, and
 * durations as people say them. Pure.
 */
#ifndef SERVER_ADMIN_HTML_H
#define SERVER_ADMIN_HTML_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/text.h"

/* As printf; one call adds 1023 bytes at most. Never for bytes of others. */
__attribute__((format(printf, 2, 3))) void text_format(struct text *text, const char *form, ...);

/*
 * Bytes of others as people can read them: what is no UTF-8, or does not show, and the backslash,
 * as \x1b, and "..." where they are cut after `most` of them. Returns the length; `to` holds
 * VISIBLE_MAX bytes.
 */
enum { VISIBLE_MAX = 4 * LIMIT_URL + 3 };
size_t visible_bytes(const char *bytes, size_t len, size_t most, char to[VISIBLE_MAX]);

/* The same for HTML, in an element or in a quoted attribute. */
void html_bytes(struct text *text, const char *bytes, size_t len, size_t most);
void html_string(struct text *text, const char *string);

/* "0.4 s", "12 s", "3 min 20 s", "5 h 2 min", "4 d 3 h". */
void text_ago(struct text *text, int64_t ms);

#endif
