#include "protocol/token.h"

#include <string.h>

#include "protocol/text.h"

static bool all_digits(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (memchr("0123456789abcdef", value[i], 16) == NULL)
            return false;
    return true;
}

bool token_is(const char *value, size_t len)
{
    return len == LIMIT_TOKEN && all_digits(value, len);
}

bool token_is_frozen(const char *value, size_t len)
{
    return len == LIMIT_TOKEN && value[0] == '!' && all_digits(value + 1, len - 1);
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
