#include "client/cli/patience.h"

#include "client/cli/clock.h"
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
