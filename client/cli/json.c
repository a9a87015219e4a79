#include "client/cli/json.h"

#include <inttypes.h>
#include <string.h>

#include "protocol/text.h"

static struct json_view view(const char *text)
{
    return (struct json_view){text, strlen(text)};
}

static void write_string(FILE *out, struct json_view text)
{
    fputc('"', out);
    while (text.len > 0) {
        char buf[256];
        struct text escaped = {.buf = buf, .size = sizeof(buf)};
        size_t taken = text_escape(&escaped, text.at, text.len, TEXT_JSON);
        fwrite(escaped.buf, 1, escaped.len, out);
        text = (struct json_view){text.at + taken, text.len - taken};
    }
    fputc('"', out);
}

static void write_key(struct json *json, struct json_view key)
{
    if (json->comma)
        fputc(',', json->out);
    json->comma = true;
    write_string(json->out, key);
    fputc(':', json->out);
}

void json_begin(struct json *json, char bracket)
{
    if (json->comma)
        fputc(',', json->out);
    fputc(bracket, json->out);
    json->comma = false;
}

void json_end(struct json *json, char bracket)
{
    fputc(bracket, json->out);
    json->comma = true;
}

void json_text_view(struct json *json, struct json_view key, struct json_view text)
{
    write_key(json, key);
    write_string(json->out, text);
}

void json_raw_view(struct json *json, struct json_view key, struct json_view raw)
{
    write_key(json, key);
    fwrite(raw.at, 1, raw.len, json->out);
}

void json_text(struct json *json, const char *key, const char *text)
{
    json_text_view(json, view(key), view(text));
}

void json_number(struct json *json, const char *key, int64_t number)
{
    write_key(json, view(key));
    fprintf(json->out, "%" PRId64, number);
}
