/*
 * Files with secrets, certificates and keys: a regular one, read whole and wiped afterwards. What
 * is none (a pipe, a terminal) could keep the daemon waiting.
 */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/text.h"

struct file {
    char *bytes; /* size of them; the owner's, for file_free() */
    size_t size;
    size_t len;
    bool exposed; /* its mode lets every user of the host read or write it */
};

/* Read at most `size` bytes of it. On failure the error goes behind the path ("cannot be read:
 * Permission denied"), and there is nothing to free. */
bool file_read(struct file *file, const char *path, size_t size, struct error *error);

/* Wipes it first. */
void file_free(struct file *file);

#endif
