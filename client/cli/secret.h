/*
 * The secret by which the daemon knows who we are: a file with one line. It never stands on a
 * command line, where other users of this machine could read it.
 */
#ifndef CLIENT_CLI_SECRET_H
#define CLIENT_CLI_SECRET_H

#include <stdbool.h>

#include "protocol/error.h"
#include "protocol/limits.h"

enum { SECRET_SIZE = LIMIT_SECRET + 4 };

/* Without the line feed behind it. False: the error names the file, and what is wrong with it. */
__attribute__((warn_unused_result)) bool secret_read(const char *path, char secret[SECRET_SIZE],
                                                     struct error *error);

#endif
