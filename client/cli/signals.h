/*
 * Signals by name, and sets of them.
 */
#ifndef CLIENT_CLI_SIGNALS_H
#define CLIENT_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "protocol/text.h"

/* "TERM", "SIGTERM", "term" or "15" -> SIGTERM. */
__attribute__((warn_unused_result)) bool signal_parse(const char *text, int *number,
                                                      struct error *error);

/* The set of this one signal. */
sigset_t signal_only(int number);

#endif
