/* A byte buffer that grows at the end and is consumed from the start. */
#ifndef TESTS_FAKE_BYTES_H
#define TESTS_FAKE_BYTES_H

#include <stddef.h>

struct bytes {
    char *memory;
    size_t start; /* offset of the first byte not consumed */
    size_t end;
    size_t size;
};

/* The bytes that are left, and their number. */
static inline const char *bytes_at(const struct bytes *bytes)
{
    return bytes->memory + bytes->start;
}

static inline size_t bytes_len(const struct bytes *bytes)
{
    return bytes->end - bytes->start;
}

void bytes_add(struct bytes *bytes, const void *data, size_t len);
void bytes_take(struct bytes *bytes, size_t len);
void bytes_clear(struct bytes *bytes);
void bytes_free(struct bytes *bytes);

#endif
