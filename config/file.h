/*
 * Reads files with secrets, certificates and keys. Only regular files are read, since a pipe or a
 * terminal could block the daemon. file_free() wipes the contents.
 */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/text.h"

struct file {
    char *bytes;  /* buffer; owned, for file_free() */
    size_t size;  /* of the buffer */
    size_t len;   /* of the contents */
    bool exposed; /* every user of the host can read or write the file */
};

/* Read at most `size` bytes. On failure returns false and a message to be put after the path
 * ("cannot be read: Permission denied"); then there is nothing to free. */
bool file_read(struct file *file, const char *path, size_t size, struct error *error);

/* Wipe and free the buffer. */
void file_free(struct file *file);

#endif
