/*
 * A lock "a" that the daemon holds for the client w.client.
 */
#ifndef TESTS_UNIT_HOLD_FIXTURE_H
#define TESTS_UNIT_HOLD_FIXTURE_H

#include "tests/unit/cluster_fixture.h"

extern char token[LIMIT_TOKEN + 1]; /* set by hold() */

/* Send a LOCK of "a" with HOLD, which must be granted. */
void hold(const char *line);

/* Assert that at least three masters have the key, and that all keys have the token. */
void expect_held(void);

/* Assert that the next message to the client is LOST or WARN (`what`) for this lock. */
void expect_push(const char *what, const char *reason);

/* The remaining TTL of the key that expires last. */
int64_t remaining_ttl_ms(void);

#endif
