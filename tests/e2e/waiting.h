/*
 * Waiting for an observable condition, with a deadline, instead of sleeping for a fixed time.
 *
 *     struct waiting waiting = waiting_for("the lock to expire");
 *     while (strcmp(client_ask(&client, "STATUS a"), "FREE") != 0)
 *         waiting_pause(&waiting);
 */
#ifndef TESTS_E2E_WAITING_H
#define TESTS_E2E_WAITING_H

#include <stdint.h>

/* Far longer than any wait takes, even with sanitizers on a busy machine: reaching it is a
 * failure. */
enum { WAITING_DEADLINE_MS = 180000 };

/* Less than 60 s, the TTL of the locks whose release is tested: they must not end by themselves. */
enum { WAITING_RELEASE_MS = 45000 };

struct waiting {
    const char *what; /* completes "waited in vain for ..." */
    int64_t deadline_ms;
};

struct waiting waiting_for(const char *what);
struct waiting waiting_for_release(const char *what);

/* Pauses before the next check. Fails the test after the deadline. */
void waiting_pause(const struct waiting *waiting);

/* Milliseconds until the deadline, for poll(2); 0 after it. */
int waiting_left_ms(const struct waiting *waiting);

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t waiting_clock_ms(void);

#endif
