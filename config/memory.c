#include "config/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_exit(void *memory)
{
    if (memory == NULL) {
        fputs("redlockd: out of memory while reading the configuration\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

void *memory_zeroed(size_t count, size_t size)
{
    return or_exit(calloc(count, size));
}

char *memory_copy(const char *text)
{
    return or_exit(strdup(text));
}
