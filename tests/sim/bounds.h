/*
 * Limits that schedules reach. protocol/limits.h is sized for thousands of clients, so the few
 * clients of a schedule never reach its limits. `make sim-tight` builds the simulator with a
 * limits.h from bounds.sh, in which limits are variables that the seed sets. Other builds ignore
 * the drawn values.
 */
#ifndef TESTS_SIM_BOUNDS_H
#define TESTS_SIM_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

struct sim_bounds {
    /* Limits that an engine gets from its configuration. */
    unsigned waiters;
    unsigned extensions; /* extensions of one token */
    unsigned hold_ttls;  /* max_hold, in multiples of max_ttl */
    /* Each of these replaces the LIMIT_* of the same name. */
    unsigned client_requests;
    unsigned rounds;
    unsigned admission_min;
    unsigned admission_start;
    unsigned timers;
    unsigned starts;
    unsigned locks;
    unsigned holds;
    unsigned renewals;
    unsigned breaks;
    unsigned seekers;
    unsigned surveys;
    unsigned extended;
    unsigned link_commands;
    unsigned link_key_probes;
    unsigned link_releases;
    unsigned link_votes;
    unsigned link_kept;
    unsigned link_pending_releases;
    unsigned link_releases_under_way;
    bool crowded; /* more clients, which repeat requests and send several at once */
};

/* Limits of the running schedule. The engines read them in place of the constants. */
extern struct sim_bounds sim_bounds;

/* Draw the limits from the seed. Most limits are either tight or out of reach. If all were tight,
 * some would always be reached first and hide the others. */
void bounds_draw(uint64_t seed);

/* Do the engines of this build use the drawn limits? */
bool bounds_are_in_force(void);
/* Does the schedule also have a crowd of clients, so that it reaches the limits? */
bool bounds_are_crowded(void);

/* Limits for which a run counts whether its schedules reach them. */
#define BOUND_TABLE(X)                                                                             \
    X(waiters)                                                                                     \
    X(pending_requests)                                                                            \
    X(rounds)                                                                                      \
    X(admission)                                                                                   \
    X(timers)                                                                                      \
    X(locks)                                                                                       \
    X(holds)                                                                                       \
    X(renewals)                                                                                    \
    X(breaks)                                                                                      \
    X(seekers)                                                                                     \
    X(surveys)                                                                                     \
    X(extended)                                                                                    \
    X(link_key_probes)                                                                             \
    X(link_releases)                                                                               \
    X(link_votes)                                                                                  \
    X(link_kept)                                                                                   \
    X(link_pending_releases)                                                                       \
    X(link_releases_under_way)                                                                     \
    X(batch)

enum bound {
#define X(name) BOUND_##name,
    BOUND_TABLE(X)
#undef X
        BOUNDS
};

const char *bound_word(enum bound bound);

struct engine;

/* Called at the end of a pass of a daemon's loop: count the limits that are reached. */
void bounds_note(const struct engine *engine, uint64_t *met);

/* The name of a limit that the engine has exceeded; NULL if there is none. */
const char *bounds_passed(const struct engine *engine);

/* The words that may follow LIMIT in a reply. */
#define LIMITED_TABLE(X)                                                                           \
    X(requests)                                                                                    \
    X(operations)                                                                                  \
    X(busy)                                                                                        \
    X(waiters)                                                                                     \
    X(waiters_per_resource)                                                                        \
    X(holds)                                                                                       \
    X(breaks)                                                                                      \
    X(slots)                                                                                       \
    X(surveys)                                                                                     \
    X(extensions)                                                                                  \
    X(hold)

enum limited {
#define X(name) LIMITED_##name,
    LIMITED_TABLE(X)
#undef X
        LIMITED /* no word of the table */
};

const char *limited_word(enum limited limited);
enum limited limited_of(const char *word);

/* Do requests wait for their start although their rounds may start? */
bool bounds_hold_back(const struct engine *engine);

/* Has the engine no room for another round, request or resource, or are half of its rounds taken up
 * by LOCKs without WAIT and by STATUSes (manager_impatient_max)? */
bool bounds_leave_no_round(const struct engine *engine);

#endif
