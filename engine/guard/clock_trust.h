/*
 * May this daemon rely on a master's clock? Pure.
 *
 * clock_monitor.h finds steps between two samples. It cannot find a step before the first sample,
 * or while no samples were taken. So a clock is in one of three states:
 *
 *     UNTRUSTED   in the beginning; after a step was confirmed, or after the monitor lost track;
 *                 when the daemon's own clock is suspect; when a step was announced that this
 *                 daemon did not observe; when the clock may be that of another server
 *
 *     STEPPED     after a step forward, until a second sample confirms it, the record of the master
 *                 shows it, or the clock steps back
 *
 *     TRUSTED     in one of four cases: the clock was monitored for the length of a quarantine; or
 *                 it fits the bounds that a daemon of this host has left on the master (the clock
 *                 entry), or has only stepped back since; or a daemon that trusts it attests that
 *                 it was steady after our first sample; or an operator override says so
 *
 * A daemon that sees a step announces it on the master. All earlier clock entries are then void on
 * all hosts. A daemon that took no samples at the time of the step stops trusting the clock.
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

/* Written instead of an entry, to announce a step: no earlier entry or attestation counts any
 * more. */
#define CLOCK_STEP_ANNOUNCED "-"

enum clock_state { CLOCK_UNTRUSTED, CLOCK_STEPPED, CLOCK_TRUSTED };

struct clock_trust {
    struct clock_monitor monitor;
    enum clock_state state;
    int64_t trusted_from_ns; /* when monitoring alone makes the clock trusted */
    /* What the clock showed at the first sample after it became untrusted. */
    int64_t first_time_us;
    int64_t steady_ns; /* when the last steady sample since that first one was sent; 0: none */
    int64_t steady_time_us;
    int64_t sampled_ns; /* when the last sample was sent that was not UNCLEAR */
    int64_t sampled_time_us;
    int64_t stepped_ns; /* when the last step forward was found; 0: never */
    int64_t stepped_until_ns;
    int64_t step_unannounced_ns; /* when a step was found that is not announced yet; 0: none */
    /* The clock was not sampled for long, until a sample sent at this time. No vote counts until a
     * heartbeat that was sent later has been answered. 0: the clock is monitored. */
    int64_t unmonitored_since_ns;
    int64_t back_ns; /* by how much the clock has stepped back, not logged yet; 0: nothing to log */
    int64_t back_taken_ns;           /* when a step back was last logged */
    char known_step[GUARD_STEP_MAX]; /* the last step announced on the master; "": not read yet */
    int64_t known_step_ns;           /* when known_step was first read */
    bool entry_left; /* on this connection, this host's clock entry was left, and it is valid */
};

/* The result of an event; the guard acts on it. */
struct clock_result {
    enum monitor_result result;
    bool confirmed; /* a second sample confirms a step: record it */
    /* Send a heartbeat at once, to announce a step or to read what other daemons left. */
    bool heartbeat;
};

/* Take a sample. */
struct clock_result clock_on_sample(struct clock_trust *clock, const struct guard_periods *periods,
                                    const struct monitor_sample *sample);

/* Take a sample that may be the first one of another clock: the earlier ones do not count. */
struct clock_result clock_begin_anew(struct clock_trust *clock, const struct guard_periods *periods,
                                     const struct monitor_sample *sample);

/* A heartbeat sent at sent_ns was answered. left: the clock entry that it wrote. step: the last
 * step announced on the master, as returned. Returns true if that step is new to this daemon; then
 * the caller has to take a sample. */
bool clock_on_heartbeat(struct clock_trust *clock, const struct guard_periods *periods,
                        const char *left, const char *step, int64_t sent_ns, int64_t now_ns);

/* Use the attestation and the clock entry that other daemons have left on the master. They can make
 * an untrusted clock trusted, or show a step. */
struct clock_result clock_inherit(struct clock_trust *clock, const struct guard_periods *periods,
                                  const char *attestation, const char *entry, int64_t now_ns);

/* A quorum of the clocks has stepped at the same time, so the daemon's own clock is suspect. */
void clock_on_suspect(struct clock_trust *clock, const struct guard_periods *periods,
                      int64_t now_ns);

/* Stop waiting for a second sample to confirm the step forward, because the record of the master
 * already shows the step, or because the clock has stepped back. */
void clock_drop_step(struct clock_trust *clock);

/* An operator override makes the clock trusted without the time of monitoring. */
void clock_override(struct clock_trust *clock);

/* Does this daemon have bounds of the clock that other daemons may rely on? */
bool clock_has_bounds(const struct clock_trust *clock, int64_t now_ns);

/*
 * What to leave on the master: the bounds if has_bounds, or the announcement of a step. "" leaves
 * the present value on the master unchanged. The attestation is "<the master's clock at the last
 * steady sample>:<clock_monitor_hidden_ns() of that sample>", both in microseconds.
 */
void clock_describe(const struct clock_trust *clock, bool has_bounds, char entry[GUARD_ENTRY_MAX],
                    char attestation[GUARD_ATTESTATION_MAX]);

/* For the log: by how many nanoseconds the clock has stepped back since the last call that returned
 * a step; 0: nothing to log. Returns a step at most once in ten seconds. */
int64_t clock_take_step_back(struct clock_trust *clock, int64_t now_ns);

#endif
