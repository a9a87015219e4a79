#include "protocol/utf8.h"

#include <stdbool.h>
#include <stdint.h>

static bool continues(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t utf8_character(const char *at, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)at;
    uint32_t code;
    size_t wanted;
    if (len == 0)
        return 0;
    if (bytes[0] < 0x80)
        return 1;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4) /* in the middle of one, overlong, beyond the last */
        return 0;
    wanted = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
    if (len < wanted)
        return 0;
    code = bytes[0] & (0x7fu >> wanted);
    for (size_t i = 1; i < wanted; i++) {
        if (!continues(bytes[i]))
            return 0;
        code = code << 6 | (bytes[i] & 0x3fu);
    }
    bool overlong = (wanted == 3 && code < 0x800) || (wanted == 4 && code < 0x10000);
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return overlong || surrogate || code > 0x10ffff ? 0 : wanted;
}
