/*
 * The values of lock keys. A token is LIMIT_TOKEN hex digits. A frozen token stands in the place of
 * a token that is being broken by force (protocol/freeze.lua): '!', digits of that BREAK alone, and
 * the last digits of the token. It excludes everybody, as the token would, and nobody can extend
 * it. Pure.
 */
#ifndef PROTOCOL_TOKEN_H
#define PROTOCOL_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/limits.h"

/* Where the digits begin that a frozen token has in common with its token; and how many random
 * bytes stand before them. */
enum { TOKEN_KEPT = 16, TOKEN_FRESH_BYTES = TOKEN_KEPT / 2 };

/* Is this value a token, or a frozen one? */
bool token_is(const char *value, size_t len);
bool token_is_frozen(const char *value, size_t len);

/* Is it the same lock, each of them being frozen or not? LIMIT_TOKEN bytes each. */
bool token_same_lock(const char *one, const char *other);

/* Write a frozen form of this token, which may be frozen itself, made of TOKEN_FRESH_BYTES random
 * bytes. LIMIT_TOKEN bytes each. */
void token_freeze(const char *token, const unsigned char *fresh, char *frozen);

#endif
