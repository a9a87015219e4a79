/*
 * The schedule of a lock under `redlock run`: until when the lock is safe, when to extend it, when
 * to give it up, and when to kill the command. Pure: time comes in as nanoseconds of
 * CLOCK_BOOTTIME.
 *
 *      granted      extend        lost                kill      deadline
 *     ----|------------|------------|-------------------|-----------|---->
 *         |<-- ttl/3 ->|<-- ttl/3 ->|<-------------- ttl/3 -------->|
 *                                   |<---- grace ------>|
 *
 * The daemon also extends the lock, because the lock is a HOLD. But a daemon that is stopped
 * reports nothing. So only the answer to an EXTEND that `redlock run` itself has sent proves a new
 * deadline. The daemon uses the same thirds of the TTL for its extensions and for LOST.
 */
#ifndef CLIENT_CLI_LEASE_H
#define CLIENT_CLI_LEASE_H

#include <stdbool.h>
#include <stdint.h>

struct lease {
    int64_t ttl_ns;
    int64_t grace_ns;    /* time for the command to end by itself after the lock is lost */
    int64_t deadline_ns; /* latest deadline that a grant or an extension has proven */
    int64_t retry_ns;    /* no EXTEND before this time */
    bool extend_now;     /* the connection has ended, so the daemon may have released the lock: the
                            next EXTEND is due at retry_ns, and not only after ttl/3 */
    bool extending;      /* an EXTEND is under way */
    int64_t asked_ns;    /* when the first EXTEND since the last success began; INT64_MAX: none */
    int64_t lost_ns;     /* when the lock was lost; INT64_MAX: not lost */
    int64_t gone_ns;     /* when the masters were found without the lock; INT64_MAX: not found */
    char why[128];       /* why the lock is lost, or why the last EXTEND failed */
};

void lease_init(struct lease *lease, int64_t ttl_ns, int64_t grace_ns, int64_t deadline_ns);

/* An EXTEND was sent. Its outcome must follow: lease_on_extended(), lease_on_failed(), lease_lose()
 * or lease_on_gone(). */
void lease_on_extending(struct lease *lease, int64_t now_ns);
/* The EXTEND succeeded and proves this deadline. */
void lease_on_extended(struct lease *lease, int64_t deadline_ns);
/* The EXTEND failed, but the lock may still be held: the deadline stays valid, and another EXTEND
 * follows. */
void lease_on_failed(struct lease *lease, const char *why, int64_t now_ns);

/* The connection has ended, so the daemon no longer extends the lock. The next EXTEND is due at
 * once. If it fails, more follow at the usual retry interval until one succeeds. */
void lease_on_closed(struct lease *lease, int64_t now_ns);

/* Gives up the lock for good. Only the first reason is kept; `why` may be lease->why. */
void lease_lose(struct lease *lease, const char *why, int64_t now_ns);
/* The masters no longer have the lock, so another client may hold it: the command gets no grace.
 * If the lease is lost already, this call ends the rest of the grace. */
void lease_on_gone(struct lease *lease, const char *why, int64_t now_ns);
bool lease_is_lost(const struct lease *lease);

/* When to send an EXTEND; INT64_MAX while one is under way or after the lock is lost. */
int64_t lease_extend_ns(const struct lease *lease);
/* When to give up the lock if no extension succeeds; INT64_MAX if it is lost already. If this
 * process was stopped and so sent no EXTEND in time, it first sends one and waits for the answer,
 * because the lock may still be held. */
int64_t lease_give_up_ns(const struct lease *lease);
/* When to kill the command: lease_margin_ns() before the deadline, so that the command has ended by
 * then. After the lock is lost, the end of the grace if that is earlier. At once if the masters no
 * longer have the lock. */
int64_t lease_kill_ns(const struct lease *lease);
/* The earliest of the three times above. */
int64_t lease_next_ns(const struct lease *lease);

/* Time limit for the answer to an EXTEND: a tenth of the TTL, at least 0.1 s so that a distant
 * daemon can answer, but at most a sixth of the TTL. */
int64_t lease_answer_timeout_ns(const struct lease *lease);

/* Time between the kill and the deadline: a tenth of the TTL, at most 1 s. */
int64_t lease_margin_ns(const struct lease *lease);

#endif
