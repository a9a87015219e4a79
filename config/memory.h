/*
 * Memory for the configuration: some KiB, at the start and at each reload. Where none is left the
 * program ends with a word on stderr, and no caller has a path for it; to locks a reload that ends
 * so is a crash.
 */
#ifndef CONFIG_MEMORY_H
#define CONFIG_MEMORY_H

#include <stddef.h>

/* All zero; to be released by free(), like the copies. */
void *memory_zeroed(size_t count, size_t size);

char *memory_copy(const char *text);

#endif
