/* The cluster under test: five masters whose clocks can be stepped, a spare master, and three
 * daemons that reach the masters in different ways. */
#ifndef TESTS_TORTURE_CLUSTER_H
#define TESTS_TORTURE_CLUSTER_H

#include "tests/torture/torture.h"

/* Start everything, and wait until every daemon has all votes. */
void cluster_open(struct torture *torture, const char *test);

/* After the end of all faults and clients: check that each daemon grants every lock again and has
 * no waiter and no hold, and that no key of a lock is left on the masters. */
void cluster_check(struct torture *torture);

/* Stop everything. Every daemon must exit with success and leave no child process and no file. */
void cluster_close(struct torture *torture);

#endif
