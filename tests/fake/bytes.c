#include "tests/fake/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 4096 };

void bytes_add(struct bytes *bytes, const void *data, size_t len)
{
    if (len == 0)
        return;
    if (bytes->start == bytes->end)
        bytes->start = bytes->end = 0;
    if (bytes->end + len > bytes->size) {
        size_t size = bytes->size != 0 ? bytes->size : FIRST;
        while (bytes->end + len > size)
            size *= 2;
        bytes->memory = realloc(bytes->memory, size);
        assert(bytes->memory != NULL);
        bytes->size = size;
    }
    memcpy(bytes->memory + bytes->end, data, len);
    bytes->end += len;
}

void bytes_take(struct bytes *bytes, size_t len)
{
    assert(len <= bytes_len(bytes));
    bytes->start += len;
}

void bytes_clear(struct bytes *bytes)
{
    bytes->start = bytes->end = 0;
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->memory);
    *bytes = (struct bytes){0};
}
