#include "client/cli/retry_policy.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "protocol/request.h"
#include "protocol/units.h"

/* The interval between a failed request and its retry. Near the end of the wait it is shorter. */
static const int64_t AGAIN_NS = 250 * (int64_t)NS_PER_MS;

/* A request that fails when no more than this is left of the wait is not retried. Without this
 * margin, the last HELD would often be followed by one more LOCK: the wait that the daemon is given
 * is rounded down to milliseconds, so HELD can come up to 1 ms before the wait ends. */
static const int64_t LAST_NS = 10 * (int64_t)NS_PER_MS;

static bool is_spent(int64_t now_ns, int64_t ends_ns)
{
    return now_ns >= ends_ns - LAST_NS;
}

enum retry_decision retry_decide(enum redlock_status status, const struct access_check *access,
                                 int64_t now_ns, int64_t ends_ns)
{
    if (is_spent(now_ns, ends_ns))
        return RETRY_NEVER;
    bool away = status == REDLOCK_UNREACHABLE || status == REDLOCK_BROKEN ||
                status == REDLOCK_TIMEOUT || status == REDLOCK_SHUTDOWN ||
                (status == REDLOCK_LIMIT && access->ended) ||
                (status == REDLOCK_DENIED && access->ended && access->let_in);
    if (status == REDLOCK_HELD || status == REDLOCK_NOQUORUM || status == REDLOCK_LATE)
        return RETRY_SILENTLY;
    return away ? RETRY_WITH_MESSAGE : RETRY_NEVER;
}

int64_t retry_at_ns(int64_t now_ns, int64_t ends_ns)
{
    return now_ns + AGAIN_NS < ends_ns - LAST_NS ? now_ns + AGAIN_NS : ends_ns - LAST_NS;
}

bool ttl_shorten(const char *message, int64_t *ttl_ms)
{
    static const char separators[] = " ,.;:";
    const char *word = strstr(message, "ttl-range");
    int64_t max_ttl_ms = 0, ms;
    for (; word != NULL && *word != '\0'; word += strcspn(word, separators)) {
        word += strspn(word, separators);
        size_t len = strcspn(word, separators);
        bool has_unit = strspn(word, "0123456789") < len;
        if (has_unit && request_parse_time(word, len, &ms) == REQUEST_FINE)
            max_ttl_ms = ms;
    }
    if (max_ttl_ms == 0 || max_ttl_ms >= *ttl_ms)
        return false;
    *ttl_ms = max_ttl_ms;
    return true;
}

bool quorum_is_missing(const char *message)
{
    unsigned voted, total, need;
    const char *counts = strstr(message, ": ");
    return counts != NULL && sscanf(counts, ": %u/%u need=%u", &voted, &total, &need) == 3 &&
           voted < need;
}

bool nesting_has(const char *list, const char *name, bool any_slot)
{
    size_t name_len = strlen(name);
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, " ");
        bool begins = len >= name_len && memcmp(list, name, name_len) == 0;
        if (begins && (any_slot ? list[name_len] == '#' : len == name_len))
            return true;
        list += len + strspn(list + len, " ");
    }
    return false;
}
