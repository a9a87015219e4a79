/*
 * Handles of libredlock in a test.
 */
#ifndef TESTS_E2E_LIBRARY_H
#define TESTS_E2E_LIBRARY_H

#include <stdint.h>

#include "client/c/redlock.h"
#include "tests/e2e/daemon.h"

/* Returns a handle for the unix socket of the daemon. */
struct redlock *library_open(const struct daemon *daemon);

/* Fails with the error text of the handle unless the status is the expected one. */
void library_expect(const struct redlock *redlock, enum redlock_status status,
                    enum redlock_status expected);

/* Acquires the lock. The test fails unless it is granted. */
struct redlock_lock library_acquire(struct redlock *redlock, const char *resource, int64_t ttl_ms,
                                    const struct redlock_lock_options *options);

/* Waits for the next event. library_answer() requires that this event is the answer to request `id`
 * and has this status. */
struct redlock_event library_next(struct redlock *redlock);
struct redlock_event library_answer(struct redlock *redlock, uint64_t id,
                                    enum redlock_status status);

#endif
