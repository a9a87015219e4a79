/*
 * A handle of libredlock in a test.
 */
#ifndef TESTS_E2E_LIBRARY_H
#define TESTS_E2E_LIBRARY_H

#include <stdint.h>

#include "client/c/redlock.h"
#include "tests/e2e/daemon.h"

/* To the unix socket of that daemon. */
struct redlock *library_open(const struct daemon *daemon);

/* What was returned has to be this; else the test fails with what the handle says. */
void library_expect(const struct redlock *redlock, enum redlock_status status,
                    enum redlock_status expected);

struct redlock_lock library_acquire(struct redlock *redlock, const char *resource, int64_t ttl_ms,
                                    const struct redlock_lock_options *options);

/* Wait for the next event; for one that is the answer to this. */
struct redlock_event library_next(struct redlock *redlock);
struct redlock_event library_answer(struct redlock *redlock, uint64_t id,
                                    enum redlock_status status);

#endif
