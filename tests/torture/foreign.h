/*
 * A client of another Redlock library: the paper's algorithm and no more, directly on the masters.
 *
 * The client sends SET NX PX to all masters, one after the other, and needs a quorum. It subtracts
 * the elapsed time, 1 % and 2 ms from the TTL. It releases by compare-and-delete on all masters. It
 * has no guard and no fencing tokens.
 */
#ifndef TESTS_TORTURE_FOREIGN_H
#define TESTS_TORTURE_FOREIGN_H

#include <hiredis/hiredis.h>
#include <pthread.h>

#include "tests/prng.h"
#include "tests/torture/torture.h"

struct foreign {
    struct torture *torture;
    unsigned index; /* less than LEDGER_FOREIGN */
    struct prng prng;
    redisContext *masters[STAGE_MASTERS]; /* NULL: not connected */
    pthread_t thread;
};

void foreign_start(struct foreign *foreign, struct torture *torture, unsigned index);

/* Wait until its thread ends. torture->ending must be set. */
void foreign_end(struct foreign *foreign);

#endif
