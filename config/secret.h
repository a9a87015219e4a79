/*
 * A secret that stands in a file of its own, in one line.
 */
#ifndef CONFIG_SECRET_H
#define CONFIG_SECRET_H

#include <stdbool.h>

#include "protocol/text.h"

enum { SECRET_MAX = 1024 };

/*
 * The secret, without the line feed behind it; to be released by secret_free(). NULL on failure:
 * then the error goes behind the path ("cannot be read: Permission denied"). *exposed: the mode of
 * the file lets every user of the host read or write it.
 */
char *secret_load(const char *path, bool *exposed, struct error *error);

/* Wipes it first. NULL is no secret. */
void secret_free(char *secret);

#endif
