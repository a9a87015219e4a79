/*
 * May this daemon rely on a master's clock? Pure.
 *
 * clock_monitor.h finds steps between two samples. What it cannot see is a step before the first
 * sample, or while nothing was sampled. So a clock is
 *
 *     UNTRUSTED   at first; after a step or a loss of track; when our own clock is suspect; when
 *                 a step was announced that this daemon was not there to see
 *     STEPPED     since a step forward, until a second sample confirms it
 *     TRUSTED     when it was watched for a quarantine; or when it fits the bounds that a daemon of
 *                 this host left on the master (the clock entry); or when a daemon that trusts it
 *                 attests that it was steady after our first sample; or by an operator's override
 *
 * A daemon that sees a step announces it on the master: clock entries from before are void on all
 * hosts then, and a daemon that did not sample meanwhile starts again.
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

/* In place of an entry: there has been a step, and no entry or attestation from before counts. */
#define CLOCK_STEP_ANNOUNCED "-"

enum clock_state { CLOCK_UNTRUSTED, CLOCK_STEPPED, CLOCK_TRUSTED };

struct clock_trust {
    struct clock_monitor watch;
    enum clock_state state;
    int64_t trusted_from_ns; /* when it is by watching alone */
    int64_t first_time_us;   /* its time at the first sample since it was untrusted */
    int64_t steady_ns;       /* when the last steady sample since then was sent; 0: none */
    int64_t steady_time_us;
    int64_t looked_ns; /* when the last sample that proved something was sent */
    int64_t looked_time_us;
    int64_t stepped_ns; /* 0: never */
    int64_t stepped_until_ns;
    int64_t step_unannounced_ns;  /* a step since then is still to be announced; 0: none */
    int64_t unmonitored_since_ns; /* it was not sampled for long: a heartbeat sent since then has to
                                     be heard before a vote counts; 0: it is monitored */
    int64_t back_ns;              /* how far it has stepped back; 0: not since that was taken */
    int64_t back_taken_ns;
    char known_step[GUARD_STEP_MAX]; /* the last one announced there; "": not heard yet */
    int64_t known_step_ns;           /* when that was heard first */
    bool entry_left; /* on this connection: the clock entry of this host is there, and good */
};

/* What has come of an event, for the guard to act on. */
struct clock_result {
    enum monitor_result result;
    bool confirmed; /* a second sample shows the step as well: it is to be recorded */
    bool heartbeat; /* wanted at once: a step is to be announced, or the others are to be heard */
};

struct clock_result clock_on_sample(struct clock_trust *clock, const struct guard_periods *periods,
                                    const struct monitor_sample *sample);

/* A heartbeat sent at sent_ns was answered. left: what it left as clock entry; step: the last one
 * announced there. True if that is news: a sample has to follow. */
bool clock_on_heartbeat(struct clock_trust *clock, const struct guard_periods *periods,
                        const char *left, const char *step, int64_t sent_ns, int64_t now_ns);

/* Other daemons may have left what makes an untrusted clock trusted, or shows a step. */
struct clock_result clock_inherit(struct clock_trust *clock, const struct guard_periods *periods,
                                  const char *attestation, const char *entry, int64_t now_ns);

/* Most clocks have stepped at once, so ours is suspect. */
void clock_on_suspect(struct clock_trust *clock, const struct guard_periods *periods,
                      int64_t now_ns);

/* The step is not to be confirmed any more: the master's record tells of it. */
void clock_drop_step(struct clock_trust *clock);

/* An operator's override replaces the time of watching. */
void clock_override(struct clock_trust *clock);

/* Has this daemon bounds of the clock that others may go by? */
bool clock_has_bounds(const struct clock_trust *clock, int64_t now_ns);

/* What to leave on the master: the bounds, if it has any, or the announcement of a step. "" leaves
 * what is there. The attestation is "<time of the sample>:<what may be hidden>", in microseconds.
 */
void clock_describe(const struct clock_trust *clock, bool has_bounds, char entry[GUARD_ENTRY_MAX],
                    char attestation[GUARD_ATTESTATION_MAX]);

/* How far it has stepped back since that was told last, for the log; at most one line in ten
 * seconds. */
int64_t clock_take_step_back(struct clock_trust *clock, int64_t now_ns);

#endif
