/*
 * ck_assert for hot paths: one of check's that passes is no test alone, it writes its place to a
 * file, which costs more than what it looks at.
 */
#ifndef TESTS_BENCH_MUST_H
#define TESTS_BENCH_MUST_H

#include <check.h>
#include <stdbool.h>

static inline void must(bool fine, const char *what)
{
    if (!fine)
        ck_abort_msg("not so: %s", what);
}

#endif
