/*
 * May this daemon rely on a master's clock? Pure.
 *
 * clock_monitor.h finds steps between two samples. It cannot see a step before the first sample, or
 * while no samples were taken. So a clock is in one of three states:
 *
 *     UNTRUSTED   at first; after a step, or after the monitor lost track; when the daemon's own
 *                 clock is suspect; when a step was announced that this daemon did not observe
 *     STEPPED     after a step forward, until a second sample confirms it
 *     TRUSTED     after it was monitored for a quarantine; or if it fits the bounds that a daemon
 * of this host left on the master (the clock entry); or if a daemon that trusts it attests that it
 * was steady after our first sample; or by an operator override
 *
 * A daemon that sees a step announces it on the master. All earlier clock entries are then void on
 * all hosts, and a daemon that took no samples at the time starts again.
 */
#ifndef ENGINE_GUARD_CLOCK_TRUST_H
#define ENGINE_GUARD_CLOCK_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/guard/clock_monitor.h"
#include "engine/guard/rules.h"

enum {
    GUARD_ENTRY_MAX = 160,
    GUARD_ATTESTATION_MAX = 48,
    GUARD_STEP_MAX = 24,
};

/* Replaces an entry after a step: no earlier entry or attestation counts. */
#define CLOCK_STEP_ANNOUNCED "-"

enum clock_state { CLOCK_UNTRUSTED, CLOCK_STEPPED, CLOCK_TRUSTED };

struct clock_trust {
    struct clock_monitor monitor;
    enum clock_state state;
    int64_t trusted_from_ns; /* when monitoring alone makes it trusted */
    int64_t first_time_us;   /* its time at the first sample since it was untrusted */
    int64_t steady_ns;       /* when the last steady sample since then was sent; 0: none */
    int64_t steady_time_us;
    int64_t sampled_ns; /* when the last conclusive sample was sent */
    int64_t sampled_time_us;
    int64_t stepped_ns; /* last step forward; 0: never */
    int64_t stepped_until_ns;
    int64_t step_unannounced_ns; /* a step since then is not announced yet; 0: none */
    /* The clock was not sampled for long. A heartbeat sent since then must be answered before a
     * vote counts; 0: the clock is monitored. */
    int64_t unmonitored_since_ns;
    int64_t back_ns; /* back step not logged yet; 0: none */
    int64_t back_taken_ns;
    char known_step[GUARD_STEP_MAX]; /* the last step announced on the master; "": not read yet */
    int64_t known_step_ns;           /* when known_step was first read */
    bool entry_left; /* this host's clock entry is on the master and valid; for this connection */
};

/* The result of an event; the guard acts on it. */
struct clock_result {
    enum monitor_result result;
    bool confirmed; /* a second sample shows the step as well: record it */
    bool heartbeat; /* send one at once, to announce a step or to read what other daemons left */
};

struct clock_result clock_on_sample(struct clock_trust *clock, const struct guard_periods *periods,
                                    const struct monitor_sample *sample);

/* A heartbeat sent at sent_ns was answered. left: the clock entry that it left; step: the last
 * step announced on the master. Returns true if that step is new to this daemon: a sample has to
 * follow. */
bool clock_on_heartbeat(struct clock_trust *clock, const struct guard_periods *periods,
                        const char *left, const char *step, int64_t sent_ns, int64_t now_ns);

/* Use what other daemons left on the master: it may make an untrusted clock trusted, or show a
 * step. */
struct clock_result clock_inherit(struct clock_trust *clock, const struct guard_periods *periods,
                                  const char *attestation, const char *entry, int64_t now_ns);

/* Most clocks have stepped at once, so the daemon's own clock is suspect. */
void clock_on_suspect(struct clock_trust *clock, const struct guard_periods *periods,
                      int64_t now_ns);

/* Stop waiting for the step to be confirmed: the master's record already shows it. */
void clock_drop_step(struct clock_trust *clock);

/* An operator override replaces the time of monitoring. */
void clock_override(struct clock_trust *clock);

/* Does this daemon have bounds of the clock that others may rely on? */
bool clock_has_bounds(const struct clock_trust *clock, int64_t now_ns);

/*
 * What to leave on the master: the bounds, if there are any, or the announcement of a step. ""
 * leaves the present value there. The attestation is "<time of the sample>:<what may be hidden>",
 * in microseconds.
 */
void clock_describe(const struct clock_trust *clock, bool has_bounds, char entry[GUARD_ENTRY_MAX],
                    char attestation[GUARD_ATTESTATION_MAX]);

/* How far the clock has stepped back since the last call, for the log; at most one line in ten
 * seconds. */
int64_t clock_take_step_back(struct clock_trust *clock, int64_t now_ns);

#endif
