/*
 * How long a lock is still valid: the arithmetic of the paper ("Distributed Locks with Redis",
 * section "The Redlock Algorithm", step 3, and "Safety arguments"). Pure.
 *
 *     validity = ttl - (t_decided - t_started) - drift
 *     drift    = ttl * clock_drift_rate + clock_drift_margin
 *
 * t_started is read before the first byte of the round is queued. t_decided is read after the
 * daemon has received the reply that decides the round. All times are nanoseconds of
 * CLOCK_BOOTTIME.
 */
#ifndef ENGINE_ROUND_VALIDITY_H
#define ENGINE_ROUND_VALIDITY_H

#include <stdint.h>

/* The assumed drift between two clocks: a rate in parts per million, and a constant margin. */
struct drift {
    int64_t rate_ppm;
    int64_t margin_ns;
};

/* The drift to subtract from a TTL of ttl_ns. */
int64_t drift_of(const struct drift *drift, int64_t ttl_ns);

/* The end of the validity of a lock whose round began at started_ns: t_decided + validity. */
int64_t valid_until(const struct drift *drift, int64_t ttl_ns, int64_t started_ns);

/*
 * The elapsed time that a reply tells the client, in whole milliseconds: the time from received_ns
 * to now_ns, reduced by the drift rate and rounded down. The client adds it on its own clock, and
 * t_send + elapsed + validity is never later than the true deadline.
 */
int64_t elapsed_for_client_ms(const struct drift *drift, int64_t received_ns, int64_t now_ns);

#endif
