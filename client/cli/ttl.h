/*
 * The time to live where the user gave none: the usual one, or the daemon's max_ttl where that is
 * shorter. Pure.
 */
#ifndef CLIENT_CLI_TTL_H
#define CLIENT_CLI_TTL_H

#include <stdbool.h>
#include <stdint.h>

/* The message of a refusal says which times to live are possible: "... ttl-range a ttl is from 13ms
 * to 10s here". If the longest of them is shorter than *ttl_ms, take it: true. */
bool ttl_shorten(const char *message, int64_t *ttl_ms);

#endif
