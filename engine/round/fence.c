#include "engine/round/fence.h"

#include "protocol/redis.h"

int64_t fence_propose(struct fence *fence, int64_t wall_us, int64_t seen)
{
    int64_t ballot = wall_us > fence->last ? wall_us : fence->last + 1;
    /* If the wall clock shows a time before 1970 or after 2255, fence->last stays as it is, so that
     * later ballots are not raised. */
    if (ballot <= 0 || ballot >= REDIS_BALLOT_END)
        return 0;
    fence->last = ballot;
    if (seen >= ballot)
        ballot = seen + 1;
    return ballot < REDIS_BALLOT_END ? ballot : 0;
}
