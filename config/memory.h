/*
 * Memory for the configuration: some KiB, at the start and for each reload. If allocation fails,
 * the program prints an error and exits, so that no caller has to handle it. For locks, such an
 * exit during a reload is a crash of the daemon.
 */
#ifndef CONFIG_MEMORY_H
#define CONFIG_MEMORY_H

#include <stddef.h>

/* Zeroed memory and a copy of a string. The caller frees both with free(). */
void *memory_zeroed(size_t count, size_t size);

char *memory_copy(const char *text);

#endif
