#include "server/log_throttle.h"

#include <assert.h>

#include "protocol/units.h"

bool log_throttle_may(struct log_throttle *throttle, int64_t now_ns)
{
    if (now_ns >= throttle->until_ns) {
        assert(throttle->left_out == 0);
        throttle->until_ns = now_ns + NS_PER_S;
        throttle->lines = 0;
    }
    if (throttle->lines < LOG_THROTTLE_LINES) {
        throttle->lines++;
        return true;
    }
    throttle->left_out++;
    return false;
}

uint64_t log_throttle_take(struct log_throttle *throttle, int64_t now_ns)
{
    uint64_t left_out = throttle->left_out;
    if (now_ns < throttle->until_ns)
        return 0;
    throttle->left_out = 0;
    return left_out;
}
