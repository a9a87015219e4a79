/*
 * What a torture says about itself.
 */
#ifndef TESTS_TORTURE_SUMMARY_H
#define TESTS_TORTURE_SUMMARY_H

#include "tests/torture/faults.h"
#include "tests/torture/torture.h"

/* How it went, on standard output. */
void summary_print(struct torture *torture, const struct faults *faults);

/* Its last line. */
void summary_result(const struct torture *torture);

/* How to look for a violation again, on standard error. */
void summary_violation(struct torture *torture, const char *fault_words);

#endif
