#include "server/throttle.h"

#include <assert.h>

#include "protocol/units.h"

bool throttle_may(struct throttle *throttle, int64_t now_ns)
{
    if (now_ns >= throttle->until_ns) {
        assert(throttle->left_out == 0);
        throttle->until_ns = now_ns + NS_PER_S;
        throttle->lines = 0;
    }
    if (throttle->lines < THROTTLE_LINES) {
        throttle->lines++;
        return true;
    }
    throttle->left_out++;
    return false;
}

uint64_t throttle_take(struct throttle *throttle, int64_t now_ns)
{
    uint64_t left_out = throttle->left_out;
    if (now_ns < throttle->until_ns)
        return 0;
    throttle->left_out = 0;
    return left_out;
}
