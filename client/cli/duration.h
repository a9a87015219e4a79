/*
 * Parses and prints durations for people. Pure.
 */
#ifndef CLIENT_CLI_DURATION_H
#define CLIENT_CLI_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/text.h"

/* Parses "30s", "500ms", "5m", "1h" and "0" to milliseconds. False: the error says what is allowed.
 * A bare number is an error, although it means milliseconds in the protocol: people who write 30
 * mean seconds. */
__attribute__((warn_unused_result)) bool duration_parse(const char *text, int64_t *ms,
                                                        struct error *error);

/* Prints a duration, rounded down: "850ms", "12.3s", "2m5s", "3h12m", "2d4h". ms must not be
 * negative. */
enum { DURATION_PRINTED = 32 };
void duration_print(int64_t ms, char buf[DURATION_PRINTED]);

/* Prints short durations as "649us" or "1.3ms", and longer ones like duration_print(). */
void duration_print_us(int64_t us, char buf[DURATION_PRINTED]);

#endif
