/*
 * The cluster `w` of five masters, for struct runner_settings.
 */
#ifndef TESTS_UNIT_CLUSTER_FIXTURE_H
#define TESTS_UNIT_CLUSTER_FIXTURE_H

#include "tests/unit/cluster.h"

extern struct cluster w;

void cluster_setup(void);         /* the masters vote */
void cluster_setup_settled(void); /* the masters vote, and nothing else is due */
void cluster_teardown(void);

#endif
