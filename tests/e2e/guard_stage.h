/*
 * What the tests of the guard on real masters share: two daemons over five masters whose clocks can
 * be stepped, and a lock whose deadline is known.
 */
#ifndef TESTS_E2E_GUARD_STAGE_H
#define TESTS_E2E_GUARD_STAGE_H

#include <stdint.h>

#include "tests/e2e/stage.h"

/* The max_ttl of guard_careful, and the TTL of every lock whose deadline a test checks. */
#define GUARD_MAX_TTL "4s"

/* A node_timeout for tests in which a master that is slow on a busy machine must keep its vote. */
enum { GUARD_SLOW_MS = 3000 };

/* guard_patient has the default max_ttl: a quarantine longer than any test. */
extern const struct stage_plan guard_careful;
extern const struct stage_plan guard_patient;

/* A second daemon over the same masters. */
struct guard_second {
    struct daemon daemon;
    struct client client;
};

void guard_open_second(struct stage *stage, struct guard_second *second,
                       const struct daemon_plan *plan);
void guard_close_second(struct guard_second *second);

/* Acquires the lock and returns its deadline on the clock of the test. */
int64_t guard_lock_until(struct client *client);

/* Acquires the lock on a, b and c only; d and e are stopped. Returns the deadline. */
int64_t guard_lock_on_three(struct stage *stage);

/* Resumes d and e and deletes the key on them. The SET of the LOCK may still be queued there. (On a
 * busy machine, the daemon may have found d and e suspect before the LOCK and sent them no SET.)
 * When a master answers the test's PING, it has executed everything that was queued before. */
void guard_resume_without_key(struct stage *stage);

/* Retries LOCK until it is granted, which must not happen before the deadline. */
void guard_expect_grant_after(struct client *client, int64_t deadline_ms);

/* Step the clocks of a, b and c by a minute. */
void guard_step_three_forward(struct stage *stage);
void guard_step_three_back(struct stage *stage);

#endif
