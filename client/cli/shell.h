/*
 * Words as a shell reads them back. Pure.
 */
#ifndef CLIENT_CLI_SHELL_H
#define CLIENT_CLI_SHELL_H

#include "protocol/text.h"

/* A space and the word, in quotes where it needs them. What does not show is written as $'\233',
 * which not every shell reads; but it does nothing to the terminal. */
void shell_word(struct text *text, const char *word);

#endif
