#include "protocol/token.h"

#include <assert.h>
#include <string.h>

#include "protocol/swar.h"
#include "protocol/text.h"

bool token_is(const char *value, size_t len)
{
    static_assert(LIMIT_TOKEN % 8 == 0, "a token is whole words");
    size_t i = 0;
    if (len != LIMIT_TOKEN)
        return false;
    while (i < LIMIT_TOKEN && swar_are_hex(value + i))
        i += 8;
    return i == LIMIT_TOKEN;
}

bool token_is_frozen(const char *value, size_t len)
{
    char digits[LIMIT_TOKEN];
    if (len != LIMIT_TOKEN || value[0] != '!')
        return false;
    memcpy(digits, value, LIMIT_TOKEN);
    digits[0] = '0';
    return token_is(digits, len);
}

bool token_same_lock(const char *one, const char *other)
{
    return memcmp(one + TOKEN_KEPT, other + TOKEN_KEPT, LIMIT_TOKEN - TOKEN_KEPT) == 0;
}

void token_freeze(const char *token, const unsigned char *fresh, char *frozen)
{
    text_hex(fresh, TOKEN_FRESH_BYTES, frozen);
    frozen[0] = '!';
    memcpy(frozen + TOKEN_KEPT, token + TOKEN_KEPT, LIMIT_TOKEN - TOKEN_KEPT);
}
