#include "protocol/utf8.h"

#include <stdbool.h>
#include <stdint.h>

static bool continues(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* 0 where none begins; else its bytes, and *code is which it is. */
static size_t decode(const char *at, size_t len, uint32_t *code)
{
    const unsigned char *bytes = (const unsigned char *)at;
    size_t wanted;
    if (len == 0)
        return 0;
    *code = bytes[0];
    if (bytes[0] < 0x80)
        return 1;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4) /* in the middle of one, overlong, beyond the last */
        return 0;
    wanted = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
    if (len < wanted)
        return 0;
    *code = bytes[0] & (0x7fu >> wanted);
    for (size_t i = 1; i < wanted; i++) {
        if (!continues(bytes[i]))
            return 0;
        *code = *code << 6 | (bytes[i] & 0x3fu);
    }
    bool overlong = (wanted == 3 && *code < 0x800) || (wanted == 4 && *code < 0x10000);
    bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return overlong || surrogate || *code > 0x10ffff ? 0 : wanted;
}

size_t utf8_character(const char *at, size_t len)
{
    uint32_t code;
    return decode(at, len, &code);
}

/* Of Unicode's categories Cc, Cf, Zl and Zp, and fillers: what may stand in a name by accident or
 * malice, and is no letter. */
static bool is_unseen(uint32_t code)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {
        {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},     {0x34f, 0x34f},
        {0x61c, 0x61c},     {0x115f, 0x1160},   {0x180b, 0x180f}, {0x200b, 0x200f},
        {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164}, {0xfe00, 0xfe0f},
        {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff9, 0xfffb}, {0x1bca0, 0x1bca3},
        {0x1d173, 0x1d17a}, {0xe0000, 0xe01ef},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

size_t utf8_visible(const char *at, size_t len)
{
    uint32_t code;
    size_t bytes = decode(at, len, &code);
    return bytes > 0 && is_unseen(code) ? 0 : bytes;
}
