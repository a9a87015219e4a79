/*
 * The command line of the nested `redlock run`: with --also, COMMAND of the first lock is another
 * `redlock run` for the other names, just as a user could nest it by hand. Pure.
 */
#ifndef CLIENT_CLI_NESTED_H
#define CLIENT_CLI_NESTED_H

#include "client/cli/options.h"

/* The words for execvp(3), which end with NULL. The caller frees them with nested_free().
 * options->also_count must not be 0. Address and secret are not among the words, because a command
 * has them in its environment. NULL: out of memory. */
char **nested_argv(const struct options *options);

/* argv may be NULL. */
void nested_free(char **argv);

#endif
