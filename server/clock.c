#include "server/clock.h"

#include <assert.h>
#include <time.h>

#include "protocol/validity.h"

static int64_t read_clock_ns(clockid_t id)
{
    struct timespec now;
    int failed = clock_gettime(id, &now);
    assert(failed == 0);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t clock_now_ns(void)
{
    return read_clock_ns(CLOCK_BOOTTIME);
}

int64_t clock_wall_ns(void)
{
    return read_clock_ns(CLOCK_REALTIME);
}
