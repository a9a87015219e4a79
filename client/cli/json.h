/*
 * Writes JSON one member at a time. The caller must end each object and array that it has begun.
 *
 *     struct json json = {.out = stdout};
 *     json_begin(&json, '{');
 *     json_text(&json, "status", "held");
 *     json_number(&json, "hint_ms", 1200);
 *     json_end(&json, '}');                       {"status":"held","hint_ms":1200}
 *
 * The output is valid UTF-8 for any text. A byte that is not valid UTF-8 is escaped as if the text
 * were Latin-1: 0xff becomes "\u00ff". Control characters are escaped as well.
 */
#ifndef CLIENT_CLI_JSON_H
#define CLIENT_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool comma; /* the next member needs a comma before it */
};

/* Begin an object or an array, at the top level or in an array. bracket: '{' or '['. */
void json_begin(struct json *json, char bracket);
void json_end(struct json *json, char bracket);

void json_text(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, int64_t number);

/* For text without a NUL at its end. raw: true, false, null, or a number as received. */
struct json_view {
    const char *at;
    size_t len;
};
void json_text_view(struct json *json, struct json_view key, struct json_view text);
void json_raw_view(struct json *json, struct json_view key, struct json_view raw);

#endif
