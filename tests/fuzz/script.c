#include "tests/fuzz/script.h"

#include <string.h>

enum { BYTES_END = 0xff };

const uint8_t *script;
size_t script_len;

unsigned script_take(void)
{
    if (script_len == 0)
        return 0;
    script_len--;
    return *script++;
}

size_t script_take_bytes(const char **bytes)
{
    const uint8_t *end = memchr(script, BYTES_END, script_len);
    size_t len = end != NULL ? (size_t)(end - script) : script_len;
    *bytes = (const char *)script;
    script += len;
    script_len -= len;
    script_take();
    return len;
}
