#include "config/secret.h"

#include <stdlib.h>
#include <string.h>

#include "config/file.h"
#include "config/memory.h"

char *secret_load(const char *path, bool *exposed, struct error *error)
{
    struct file file;
    char *secret = NULL;
    *exposed = false;
    /* Read two bytes more than a secret can have: a final line feed, and one byte that shows that
     * the file is too long. */
    if (!file_read(&file, path, SECRET_MAX + 2, error))
        return NULL;
    *exposed = file.exposed;
    if (file.len > 0 && file.bytes[file.len - 1] == '\n')
        file.len--;
    if (file.len == 0) {
        error_set(error, "is empty; write the secret into it");
    } else if (file.len > SECRET_MAX) {
        error_set(error, "is longer than %d bytes", SECRET_MAX);
    } else if (memchr(file.bytes, '\n', file.len) != NULL ||
               memchr(file.bytes, '\0', file.len) != NULL) {
        error_set(error,
                  "contains more than one line, or a NUL byte; write only the secret into it");
    } else {
        file.bytes[file.len] = '\0';
        secret = memory_copy(file.bytes);
    }
    file_free(&file);
    return secret;
}

void secret_free(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}
