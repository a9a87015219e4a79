#include "server/admin/html.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

static void put_byte(struct text *text, char byte)
{
    static const char *const entities[UCHAR_MAX + 1] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;"};
    const char *entity = entities[(unsigned char)byte];
    if (entity != NULL)
        text_string(text, entity);
    else
        text_byte(text, byte);
}

void html_bytes(struct text *text, const char *bytes, size_t len, size_t most)
{
    size_t shown = len < most ? len : most;
    /* Do not cut within a character of UTF-8, which has at most three bytes after the first. */
    for (unsigned i = 0; i < 3 && shown > 0 && shown < len; i++)
        shown -= utf8_continues((unsigned char)bytes[shown]);
    for (size_t taken = 0; taken < shown;) {
        char buf[256];
        struct text visible = {.buf = buf, .size = sizeof(buf)};
        taken += text_escape(&visible, bytes + taken, shown - taken, TEXT_EXACT);
        for (size_t i = 0; i < visible.len; i++)
            put_byte(text, visible.buf[i]);
    }
    if (len > most)
        text_string(text, "...");
}

void html_string(struct text *text, const char *string)
{
    html_bytes(text, string, strlen(string), SIZE_MAX);
}

void html_duration(struct text *text, int64_t ms)
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
