/* ck_assert for hot paths. Even an assertion that passes makes Check write its source position to a
 * file, which costs more than the code under test. */
#ifndef TESTS_BENCH_MUST_H
#define TESTS_BENCH_MUST_H

#include <check.h>
#include <stdbool.h>

static inline void must(bool fine, const char *what)
{
    if (!fine)
        ck_abort_msg("assertion failed: %s", what);
}

#endif
