/*
 * What standard output and error lead to: people, or programs.
 */
#ifndef CLIENT_CLI_TERMINAL_H
#define CLIENT_CLI_TERMINAL_H

#include <stdbool.h>

/* Somebody looks at what is written to this descriptor. */
bool terminal_is(int fd);

/* And it does what escape sequences tell it, as far as $TERM says. */
bool terminal_is_able(int fd);

/* We are in its foreground at this moment; else a shell has it, and shows its prompt there. */
bool terminal_is_ours(int fd);

/* It is able, and nobody has asked for no colours and bold letters: $NO_COLOR. */
bool terminal_has_colours(int fd);

/* How wide it is; 80 where it does not say. */
int terminal_columns(int fd);

#endif
