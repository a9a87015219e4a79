/*
 * The values of lock keys. Pure.
 *
 * A token is LIMIT_TOKEN hex digits. BREAK replaces it by a frozen token (protocol/freeze.lua):
 * '!', random digits of that BREAK, and the last digits of the token. A frozen token excludes every
 * client, as the token did, and cannot be extended.
 */
#ifndef PROTOCOL_TOKEN_H
#define PROTOCOL_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/limits.h"

/* The index of the first digit that a frozen token shares with its token, and the number of random
 * bytes before it. */
enum { TOKEN_KEPT = 16, TOKEN_FRESH_BYTES = TOKEN_KEPT / 2 };

/* Whether the value is a token; whether it is a frozen token. */
bool token_is(const char *value, size_t len);
bool token_is_frozen(const char *value, size_t len);

/* Whether two values belong to the same lock. Each is a token or a frozen token, LIMIT_TOKEN bytes
 * long. */
bool token_same_lock(const char *one, const char *other);

/* Write the frozen form of a token, which may be frozen already. `fresh` has TOKEN_FRESH_BYTES
 * random bytes; token and frozen have LIMIT_TOKEN bytes. */
void token_freeze(const char *token, const unsigned char *fresh, char *frozen);

#endif
