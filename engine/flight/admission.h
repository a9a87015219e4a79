/*
 * How many rounds may be in flight before new requests have to wait for their start. Pure.
 *
 * Without a limit, overload ends in a collapse: the masters and this daemon start more rounds than
 * they can answer within node_timeout. These rounds fail, are undone, and are started again.
 *
 * The limit adapts to the latency of the masters: the time from a command to its answer on the
 * quorum-th fastest master, so a slow minority does not count. It contains the time that answers
 * wait for a busy daemon. The target is the latency without queueing plus an allowance of a quarter
 * of node_timeout, but at most three quarters of node_timeout:
 *
 *     latency above the target              the limit shrinks in proportion, at most by half, and
 *                                           once per round trip
 *     queueing below half of the allowance  the limit grows by one for each settled round, so it
 *                                           doubles in one round trip
 *
 * The latency without queueing is the shortest one of the last two periods of ADMISSION_PERIOD_NS,
 * or the round trip of heartbeats (link->distance_ns) if that is shorter. While requests wait for
 * their start there is always queueing. So if more than half of the limit is in use when a period
 * begins, the limit is cut to an eighth, and is as large as before after a few round trips.
 *
 * TCP Vegas and Netflix's concurrency-limits limit by latency in the same way.
 *
 * The limit grows only while more than half of it is in use. With few rounds in flight the limit
 * does not change, and the daemon does no work for it.
 */
#ifndef ENGINE_FLIGHT_ADMISSION_H
#define ENGINE_FLIGHT_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/units.h"

#define ADMISSION_PERIOD_NS (10 * NS_PER_S)

/* Releases, extensions, BREAKs and hand-overs start without waiting, but count as in flight. One
 * in ADMISSION_RESERVED_SHARE places of the limit is kept for the other rounds, so that a flood of
 * releases cannot stop all acquires. */
enum { ADMISSION_RESERVED_SHARE = 8 };

struct admission {
    int64_t node_timeout_ns;
    unsigned limit;
    unsigned in_flight;         /* rounds that have started and are not settled */
    unsigned limited;           /* those among them that had to be admitted */
    unsigned settled;           /* rounds settled since the last admission_adapt() */
    int64_t shortest_ns;        /* shortest latency in this period */
    int64_t shortest_before_ns; /* shortest latency in the period before */
    int64_t period_ends_ns;
    /* Until then, some answers belong to rounds that started before the limit last shrank. */
    int64_t steady_ns;
};

void admission_init(struct admission *admission, int64_t node_timeout_ns);

/* May another round start that has to be admitted? */
static inline bool admission_has_room(const struct admission *admission)
{
    return admission->in_flight < admission->limit ||
           admission->limited <= admission->limit / ADMISSION_RESERVED_SHARE;
}

/* A round has started or settled; limited: it had to be admitted. */
static inline void admission_on_start(struct admission *admission, bool limited)
{
    admission->in_flight++;
    admission->limited += limited;
}

static inline void admission_on_settled(struct admission *admission, bool limited)
{
    admission->in_flight--;
    admission->limited -= limited;
    admission->settled++;
}

/* May clients be read? Clients that hold thousands of locks can release them at once, and releases
 * are not admitted. Without this limit, thousands of releases filled the links or timed out
 * together (9,000 clients: up to 3,369 of 57,000 requests failed in a run of 2 s; with a fixed
 * limit of LIMIT_LINK_VOTES 0 to 200). */
static inline bool admission_takes_requests(const struct admission *admission)
{
    unsigned limit =
        admission->limit > LIMIT_ADMISSION_START ? admission->limit : LIMIT_ADMISSION_START;
    unsigned most = 2 * limit;
    return admission->in_flight <= (most < LIMIT_LINK_VOTES ? most : LIMIT_LINK_VOTES);
}

/* Were enough rounds in flight in this pass that the limit may have to change? If so, call
 * admission_adapt() at the end of the pass. */
static inline bool admission_is_due(const struct admission *admission)
{
    return admission->in_flight + admission->settled > LIMIT_ADMISSION_MIN;
}

/* latency_ns: of the latest answers, or of commands without an answer if these are older, on the
 * quorum-th fastest master. distance_ns: the distance of that master. INT64_MAX: not known. */
void admission_adapt(struct admission *admission, int64_t latency_ns, int64_t distance_ns,
                     int64_t now_ns);

#endif
