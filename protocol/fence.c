#include "protocol/fence.h"

#define BALLOT_END (INT64_C(1) << 53)

int64_t fence_propose(struct fence *fence, int64_t wall_us, int64_t seen)
{
    int64_t ballot = wall_us > fence->last ? wall_us : fence->last + 1;
    /* A clock that was absurd for a while must not be remembered. */
    if (ballot <= 0 || ballot >= BALLOT_END)
        return 0;
    fence->last = ballot;
    if (seen >= ballot)
        ballot = seen + 1;
    return ballot < BALLOT_END ? ballot : 0;
}

int64_t fence_parse(const char *digits, size_t len)
{
    int64_t ballot = 0;
    if (len == 0 || len > FENCE_DIGITS_MAX)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return -1;
        ballot = 10 * ballot + (digits[i] - '0');
    }
    return ballot < BALLOT_END ? ballot : -1;
}
