/*
 * Memory for the configuration. It is read once, before there is anything to lose: where none is
 * left the program ends with a word on stderr, and no caller has a path for it.
 */
#ifndef CONFIG_MEMORY_H
#define CONFIG_MEMORY_H

#include <stddef.h>

/* All zero; to be released by free(), like the copies. */
void *memory_zeroed(size_t count, size_t size);

char *memory_copy(const char *text);

#endif
