/*
 * What standard output and error lead to: people, or programs.
 */
#ifndef CLIENT_CLI_TERMINAL_H
#define CLIENT_CLI_TERMINAL_H

#include <stdbool.h>

/* Somebody looks at what is written to this descriptor. */
bool terminal_is(int fd);

/* It shows colours and bold letters, and nobody has asked for none: $NO_COLOR, TERM=dumb. */
bool terminal_has_colours(int fd);

/* How wide it is; 80 where it does not say. */
int terminal_columns(int fd);

#endif
