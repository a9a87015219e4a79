/* The report of a torture. */
#ifndef TESTS_TORTURE_SUMMARY_H
#define TESTS_TORTURE_SUMMARY_H

#include "tests/torture/faults.h"
#include "tests/torture/torture.h"

/* Print the counts of the run to standard output. */
void summary_print(struct torture *torture, const struct faults *faults);

/* Print the verdict, the last line of the report. */
void summary_result(const struct torture *torture);

/* Print to standard error how to repeat a run with a violation. */
void summary_violation(struct torture *torture, const char *fault_words);

#endif
