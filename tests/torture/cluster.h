/*
 * The cluster under test: five masters whose clocks can be stepped, a spare one, and three daemons
 * that reach them in different ways.
 */
#ifndef TESTS_TORTURE_CLUSTER_H
#define TESTS_TORTURE_CLUSTER_H

#include "tests/torture/torture.h"

/* Start all of it, and wait until every daemon has all votes. */
void cluster_open(struct torture *torture, const char *test);

/* Everything has been mended, and all clients are gone: each daemon has to grant again, nobody is
 * left waiting or holding, no key is left. */
void cluster_check(struct torture *torture);

/* Every daemon has to end well; no child and no file is left. */
void cluster_close(struct torture *torture);

#endif
