/*
 * Reads a secret from a file that contains only the secret, in one line.
 */
#ifndef CONFIG_SECRET_H
#define CONFIG_SECRET_H

#include <stdbool.h>

#include "protocol/text.h"

enum { SECRET_MAX = 1024 };

/*
 * Returns the secret without the final line feed; the caller frees it with secret_free(). On
 * failure returns NULL and a message to be put after the path ("cannot be read: Permission
 * denied"). Sets *exposed if every user of the host can read or write the file.
 */
char *secret_load(const char *path, bool *exposed, struct error *error);

/* Wipe and free a secret. NULL is allowed. */
void secret_free(char *secret);

#endif
