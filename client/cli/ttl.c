#include "client/cli/ttl.h"

#include <string.h>

#include "protocol/request.h"

bool ttl_shorten(const char *message, int64_t *ttl_ms)
{
    static const char separators[] = " ,.;:";
    const char *word = strstr(message, "ttl-range");
    int64_t longest_ms = 0, ms;
    for (; word != NULL && *word != '\0'; word += strcspn(word, separators)) {
        word += strspn(word, separators);
        size_t len = strcspn(word, separators);
        bool has_unit = strspn(word, "0123456789") < len;
        if (has_unit && request_parse_time(word, len, &ms) == REQUEST_FINE && ms > longest_ms)
            longest_ms = ms;
    }
    if (longest_ms == 0 || longest_ms >= *ttl_ms)
        return false;
    *ttl_ms = longest_ms;
    return true;
}
