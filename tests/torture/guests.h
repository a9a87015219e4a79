/*
 * Guests: programs that play with the client packages of all languages and with node-redlock, in
 * place of the clients of players.h and foreign.h.
 *
 * Every guest does the same (tests/torture/guests): its workers lock a name in one of several ways,
 * work, extend, and release the lock or let it expire. It writes these lines:
 *
 *     held RESOURCE TOKEN FENCE TTL_MS NOW_NS UNTIL_NS   after a grant, before the work; FENCE 0:
 * none more RESOURCE TOKEN FENCE TTL_MS NOW_NS UNTIL_NS   the client now counts on the lock for
 * longer free RESOURCE TOKEN                                before the release, and after a loss
 *
 * UNTIL_NS is how long the client says that the lock is held. NOW_NS is read before the client is
 * asked. Both are on CLOCK_MONOTONIC, the only clock that Node can read.
 *
 * All guests write to one pipe. A line is written in one piece, and before the guest sends its next
 * request. So the pipe orders the lines like the mutex of the ledger orders the records of threads.
 * It does not matter when this process reads them.
 */
#ifndef TESTS_TORTURE_GUESTS_H
#define TESTS_TORTURE_GUESTS_H

#include "tests/torture/torture.h"

struct guests;

/* Starts all guests. `packages` is a folder with the programs that had to be compiled, and with
 * node_modules. overclaimer: a guest whose claims are 3 s too long, to test the checker; "": none.
 * The caller frees the result. */
struct guests *guests_start(struct torture *torture, const char *packages, const char *overclaimer);

/* Stops a guest (SIGSTOP) from time to time, and lets it continue. Call this often. */
void guests_update(struct guests *guests);

/* Waits until each guest has released its locks and has exited. */
void guests_end(struct guests *guests);

/* Prints the counts of each guest to standard output. */
void guests_print(const struct guests *guests);

#endif
