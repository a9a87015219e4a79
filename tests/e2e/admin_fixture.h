/*
 * A daemon with an admin listener, its metrics and its status page.
 */
#ifndef TESTS_E2E_ADMIN_FIXTURE_H
#define TESTS_E2E_ADMIN_FIXTURE_H

#include "tests/e2e/stage.h"

extern int admin_port; /* of the admin listener; admin_open() chooses a free one */

/* Open five masters and a daemon with an admin listener and these further YAML lines. plan: NULL or
 * other settings of the stage. */
void admin_open(struct stage *stage, const char *test, const struct stage_plan *plan,
                const char *yaml);

/* The value of a series in /metrics; -1 if there is none. */
double admin_sample(const char *series);
void admin_wait_sample(const char *series, double value);

/* Wait until the status page has these words. */
void admin_wait_page(const char *words);

#endif
