/*
 * What a torture says about itself.
 */
#ifndef TESTS_TORTURE_SUMMARY_H
#define TESTS_TORTURE_SUMMARY_H

#include "tests/torture/faults.h"
#include "tests/torture/torture.h"

/* How it went, on standard output. */
void summary_print(struct torture *torture, const struct faults *faults);

/* The history before a violation, and how to look for it again, on standard error. With
 * TORTURE_HISTORY in the environment, all that is known of it goes to that file. */
void summary_violation(struct torture *torture, const char *fault_words);

#endif
