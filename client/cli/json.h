/*
 * Writing JSON, a member at a time. It is up to the caller to end what it began.
 *
 *     struct json json = {.out = stdout};
 *     json_begin(&json, NULL, '{');
 *     json_text(&json, "status", "held");
 *     json_number(&json, "hint_ms", 1200);
 *     json_end(&json, '}');                       {"status":"held","hint_ms":1200}
 *
 * What it writes is valid UTF-8 whatever the text is: a byte that is not part of a character of
 * UTF-8 becomes the escape of its number, "\u00ff", as if the text were Latin-1. Control characters
 * are escaped as well.
 */
#ifndef CLIENT_CLI_JSON_H
#define CLIENT_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool comma; /* goes before what comes next */
};

/* bracket: '{' or '['. key: NULL at the top and in an array. */
void json_begin(struct json *json, const char *key, char bracket);
void json_end(struct json *json, char bracket);

void json_text(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, int64_t number);

/* The same for what has no NUL at its end; raw: true, false, null, or a number as it was sent. */
struct json_view {
    const char *at;
    size_t len;
};
void json_text_view(struct json *json, struct json_view key, struct json_view text);
void json_raw_view(struct json *json, struct json_view key, struct json_view raw);

#endif
