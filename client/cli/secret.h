/*
 * The secret by which the daemon knows who we are: a file with one line. It never stands on a
 * command line, where other users of this machine could read it.
 */
#ifndef CLIENT_CLI_SECRET_H
#define CLIENT_CLI_SECRET_H

#include <stdbool.h>

#include "protocol/limits.h"
#include "protocol/text.h"

enum { SECRET_SIZE = LIMIT_SECRET + 4 };

/* Without the line feed behind it. False: the error names the file, and what is wrong with it. */
__attribute__((warn_unused_result)) bool secret_read(const char *path, char secret[SECRET_SIZE],
                                                     struct error *error);

/* Later, while other things are waited for: only a file can be read again, and without delay. False
 * also for a pipe, a terminal or a FIFO; standard input may be the command's by now. */
__attribute__((warn_unused_result)) bool secret_read_again(const char *path,
                                                           char secret[SECRET_SIZE]);

#endif
