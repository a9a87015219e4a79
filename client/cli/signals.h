/*
 * Signals by name.
 */
#ifndef CLIENT_CLI_SIGNALS_H
#define CLIENT_CLI_SIGNALS_H

#include <stdbool.h>

#include "protocol/text.h"

/* "TERM", "SIGTERM", "term" or "15" -> SIGTERM. */
__attribute__((warn_unused_result)) bool signal_parse(const char *text, int *number,
                                                      struct error *error);

#endif
