#include "server/admin/html.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/utf8.h"

void text_format(struct text *text, const char *form, ...)
{
    char piece[1024];
    va_list arguments;
    va_start(arguments, form);
    int len = vsnprintf(piece, sizeof(piece), form, arguments);
    va_end(arguments);
    assert(len >= 0);
    text_bytes(text, piece, (size_t)len < sizeof(piece) ? (size_t)len : sizeof(piece) - 1);
}

size_t visible_bytes(const char *bytes, size_t len, size_t most, char to[VISIBLE_MAX])
{
    struct text visible = {.buf = to, .size = VISIBLE_MAX};
    static const char digits[] = "0123456789abcdef";
    size_t shown = len < most ? len : most;
    size_t step;
    assert(most <= LIMIT_URL);
    for (size_t i = 0; i < shown; i += step) {
        unsigned char byte = (unsigned char)bytes[i];
        const char escaped[4] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        step = byte != '\\' ? utf8_visible(bytes + i, shown - i) : 0;
        if (step > 0) {
            text_bytes(&visible, bytes + i, step);
        } else {
            text_bytes(&visible, escaped, sizeof(escaped));
            step = 1;
        }
    }
    if (len > most)
        text_string(&visible, "...");
    return visible.len;
}

void html_bytes(struct text *text, const char *bytes, size_t len, size_t most)
{
    char visible[VISIBLE_MAX];
    size_t visible_len = visible_bytes(bytes, len, most, visible);
    for (size_t i = 0; i < visible_len; i++)
        switch (visible[i]) {
        case '<':
            text_string(text, "&lt;");
            break;
        case '>':
            text_string(text, "&gt;");
            break;
        case '&':
            text_string(text, "&amp;");
            break;
        case '"':
            text_string(text, "&quot;");
            break;
        case '\'':
            text_string(text, "&#39;");
            break;
        default:
            text_byte(text, visible[i]);
        }
}

void html_string(struct text *text, const char *string)
{
    html_bytes(text, string, strlen(string), LIMIT_URL);
}

void text_ago(struct text *text, int64_t ms)
{
    int64_t s = ms / 1000;
    int64_t min = s / 60;
    int64_t h = min / 60;
    if (ms < 10000)
        text_format(text, "%" PRId64 ".%" PRId64 " s", s, ms % 1000 / 100);
    else if (s < 60)
        text_format(text, "%" PRId64 " s", s);
    else if (min < 60)
        text_format(text, "%" PRId64 " min %" PRId64 " s", min, s % 60);
    else if (h < 48)
        text_format(text, "%" PRId64 " h %" PRId64 " min", h, min % 60);
    else
        text_format(text, "%" PRId64 " d %" PRId64 " h", h / 24, h % 24);
}
