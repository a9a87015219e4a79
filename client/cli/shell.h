/*
 * Quotes words for a shell. Pure.
 */
#ifndef CLIENT_CLI_SHELL_H
#define CLIENT_CLI_SHELL_H

#include "protocol/text.h"

/* Appends a space and the word, quoted if necessary. Unprintable bytes are written as $'\233'. Not
 * every shell understands that notation, but it is harmless on a terminal. */
void shell_word(struct text *text, const char *word);

#endif
