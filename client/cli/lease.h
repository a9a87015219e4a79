/*
 * What `redlock run` knows of its lock: until when it is safe, when to extend it, when to give it
 * up, and by when everything that runs under it has to be over. Pure: time comes in as nanoseconds
 * of CLOCK_BOOTTIME.
 *
 *      granted      extend        lost                kill      deadline
 *     ----|------------|------------|-------------------|-----------|---->
 *         |<-- ttl/3 ->|<-- ttl/3 ->|<-------------- ttl/3 -------->|
 *                                   |<---- grace ------>|
 *
 * The daemon extends the lock too, as it is held for the connection (HOLD). But a daemon that was
 * stopped tells nothing, so only an extension of our own proves a deadline. The thirds are those by
 * which the daemon says LOST.
 */
#ifndef CLIENT_CLI_LEASE_H
#define CLIENT_CLI_LEASE_H

#include <stdbool.h>
#include <stdint.h>

struct lease {
    int64_t ttl_ns;
    int64_t grace_ns;    /* what the command is given to end by itself once the lock is lost */
    int64_t deadline_ns; /* the latest that was proven */
    int64_t retry_ns;    /* no extension is asked for before this */
    bool hurry;          /* the next is due at once: the daemon may have released the lock */
    bool extending;      /* one is under way */
    int64_t asked_ns;    /* when the first was asked for since then; INT64_MAX: none was */
    int64_t lost_ns;     /* since when it is lost; INT64_MAX: it is not */
    int64_t gone_ns;     /* since when it is known to be gone; INT64_MAX: it is not */
    char why[128];       /* it is lost, or could not be extended the last time */
};

void lease_init(struct lease *lease, int64_t ttl_ns, int64_t grace_ns, int64_t deadline_ns);

/* An extension was asked for; it has to be answered by one of the next two, or by lease_lose(). */
void lease_on_extending(struct lease *lease, int64_t now_ns);
/* It was granted, and proves this deadline. */
void lease_on_extended(struct lease *lease, int64_t deadline_ns);
/* Undecided: the deadline stands, and it is tried again. */
void lease_on_failed(struct lease *lease, const char *why, int64_t now_ns);

/* The connection is gone, and the daemon does not extend it any more: whatever the time, ask. At
 * once the first time, and then as often as after any failure until it is extended. */
void lease_on_closed(struct lease *lease, int64_t now_ns);

/* Give it up, for good; the first reason stays. It may be lease->why itself. */
void lease_lose(struct lease *lease, const char *why, int64_t now_ns);
/* The masters do not have it any more, so another client may hold it now: no grace is left. It may
 * have been lost before, with its deadline still ahead. */
void lease_on_gone(struct lease *lease, const char *why, int64_t now_ns);
bool lease_is_lost(const struct lease *lease);

/* When to ask for an extension; INT64_MAX while one is under way, or where it is lost. */
int64_t lease_extend_ns(const struct lease *lease);
/* When to give it up unless an extension comes before; INT64_MAX where it is lost already. Whoever
 * could not ask in time, because it was stopped, asks first: the lock may well be held still. */
int64_t lease_give_up_ns(const struct lease *lease);
/* When to kill what is left, early enough that nothing runs at the deadline; at once where the lock
 * is gone. */
int64_t lease_kill_ns(const struct lease *lease);
/* When something is to be done next. */
int64_t lease_next_ns(const struct lease *lease);

/* How long the answer to an extension may take: a tenth of the ttl; of a short one a tenth of a
 * second, so that a far daemon can answer, if that is a sixth of it at most. */
int64_t lease_answer_timeout_ns(const struct lease *lease);

/* What lies between kill and deadline: a tenth of the ttl, a second at most. */
int64_t lease_margin_ns(const struct lease *lease);

#endif
