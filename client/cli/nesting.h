/*
 * The locks that the `redlock run`s around this process hold: $REDLOCK_HELD, their names, separated
 * by spaces, which no name has. Pure.
 */
#ifndef CLIENT_CLI_NESTING_H
#define CLIENT_CLI_NESTING_H

#include <stdbool.h>

/* Is the name one of the list? NULL: there is no list. */
bool nesting_has(const char *list, const char *name);

#endif
