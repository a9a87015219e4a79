/*
 * A client of another Redlock library: the paper's algorithm and no more, straight on the masters.
 *
 * SET NX PX on all of them, one after the other, a quorum, what is left of the time to live without
 * 1 % and 2 ms, and a compare-and-delete everywhere. It knows no guard and no fences.
 */
#ifndef TESTS_TORTURE_FOREIGN_H
#define TESTS_TORTURE_FOREIGN_H

#include <hiredis/hiredis.h>
#include <pthread.h>

#include "tests/prng.h"
#include "tests/torture/torture.h"

struct foreign {
    struct torture *torture;
    unsigned index; /* < LEDGER_FOREIGN */
    struct prng prng;
    redisContext *masters[STAGE_MASTERS]; /* NULL: to be connected anew */
    pthread_t thread;
};

void foreign_start(struct foreign *foreign, struct torture *torture, unsigned index);

/* torture->ending is set: wait for its end. */
void foreign_end(struct foreign *foreign);

#endif
