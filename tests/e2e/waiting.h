/*
 * Waiting for something to be observed, with a deadline: the tests never sleep and hope.
 *
 *     struct waiting waiting = waiting_for("the lock to expire");
 *     while (strcmp(client_ask(&client, "STATUS a"), "FREE") != 0)
 *         waiting_pause(&waiting);
 */
#ifndef TESTS_E2E_WAITING_H
#define TESTS_E2E_WAITING_H

#include <stdint.h>

/* Far more than anything here takes, also with sanitizers on a machine that others keep busy:
 * meeting it is a failure. */
enum { WAITING_DEADLINE_MS = 180000 };

struct waiting {
    const char *what; /* ends the sentence "waited in vain for" */
    int64_t deadline_ms;
};

struct waiting waiting_for(const char *what);

/* Let a moment pass before the next look. Fails the test once the deadline is over. */
void waiting_pause(const struct waiting *waiting);

/* Milliseconds until the deadline, for poll(2); 0 once it is over. */
int waiting_left_ms(const struct waiting *waiting);

/* Milliseconds of a monotonic clock. */
int64_t waiting_clock_ms(void);

#endif
