/*
 * Memory for the configuration: some KiB, at the start and for each reload. If an allocation fails,
 * the program prints an error and exits, so no caller has to handle the failure. If that happens
 * during a reload, the locks end as they do when the daemon crashes.
 */
#ifndef CONFIG_MEMORY_H
#define CONFIG_MEMORY_H

#include <stddef.h>

/* Return zeroed memory, or a copy of a string. The caller frees the result with free(). */
void *memory_zeroed(size_t count, size_t size);

char *memory_copy(const char *text);

#endif
