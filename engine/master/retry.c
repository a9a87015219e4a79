#include "engine/master/retry.h"

#include "protocol/units.h"

#define RETRY_MIN_NS (50 * NS_PER_MS)
#define RETRY_MAX_NS (2 * NS_PER_S)

int64_t retry_delay_ns(unsigned attempts, uint32_t random)
{
    int64_t delay_ns = RETRY_MIN_NS << (attempts < 6 ? attempts : 6);
    if (delay_ns > RETRY_MAX_NS)
        delay_ns = RETRY_MAX_NS;
    return delay_ns / 2 + (int64_t)((uint64_t)(delay_ns / 2) * random >> 32);
}
