#include "client/cli/patience.h"

#include <stddef.h>
#include <string.h>

#include "protocol/request.h"
#include "protocol/units.h"

/* How soon a daemon that went away is looked for. */
static const int64_t AGAIN_NS = 250 * (int64_t)NS_PER_MS;

/* What is left in the end is not worth asking: a daemon is told milliseconds, so the answer to the
 * last of a wait comes up to one before that is over. */
static const int64_t LAST_NS = 10 * (int64_t)NS_PER_MS;

static bool is_spent(int64_t now_ns, int64_t ends_ns)
{
    return now_ns >= ends_ns - LAST_NS;
}

enum patience patience_after(enum redlock_status status, const struct passage *passage,
                             int64_t now_ns, int64_t ends_ns)
{
    if (is_spent(now_ns, ends_ns))
        return PATIENCE_OVER;
    switch (status) {
    case REDLOCK_HELD:
    case REDLOCK_NOQUORUM:
    case REDLOCK_LATE:
        return PATIENCE_GOES_ON;
    case REDLOCK_UNREACHABLE:
    case REDLOCK_BROKEN:
    case REDLOCK_TIMEOUT:
    case REDLOCK_SHUTDOWN:
        return PATIENCE_ALONE;
    case REDLOCK_LIMIT:
        return passage->ended ? PATIENCE_ALONE : PATIENCE_OVER;
    case REDLOCK_DENIED:
        return passage->ended && passage->let_in ? PATIENCE_ALONE : PATIENCE_OVER;
    case REDLOCK_OK:
    case REDLOCK_FREE:
    case REDLOCK_GONE:
    case REDLOCK_REFUSED:
    case REDLOCK_GARBLED:
    case REDLOCK_INVALID:
    case REDLOCK_MEMORY:
        break;
    }
    return PATIENCE_OVER;
}

int64_t patience_until_ns(int64_t now_ns, int64_t ends_ns)
{
    return now_ns + AGAIN_NS < ends_ns - LAST_NS ? now_ns + AGAIN_NS : ends_ns - LAST_NS;
}

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

bool nesting_has(const char *list, const char *name)
{
    size_t name_len = strlen(name);
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, " ");
        if (len == name_len && memcmp(list, name, len) == 0)
            return true;
        list += len + strspn(list + len, " ");
    }
    return false;
}
