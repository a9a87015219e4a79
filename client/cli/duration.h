/*
 * Durations as people write and read them. Pure.
 */
#ifndef CLIENT_CLI_DURATION_H
#define CLIENT_CLI_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/text.h"

/* "30s", "500ms", "5m", "1h", and "0" -> milliseconds. False: the error says what would be right.
 * The protocol takes a bare number for milliseconds; here it is refused, since people who write 30
 * mean seconds. */
__attribute__((warn_unused_result)) bool duration_parse(const char *text, int64_t *ms,
                                                        struct error *error);

/* To look at, and not exact: "850ms", "12.3s", "2m5s", "3h12m", "2d4h". Not negative. */
enum { DURATION_PRINTED = 32 };
void duration_print(int64_t ms, char buf[DURATION_PRINTED]);

/* The same of shorter ones: "649us", "1.3ms", then as above. */
void duration_print_us(int64_t us, char buf[DURATION_PRINTED]);

#endif
