/*
 * Bounds that a schedule meets. Those of protocol/limits.h are made for thousands of clients, and
 * the few of a schedule never meet them. So a build of its own (`make sim-tight`) has drawn ones in
 * their place: bounds.sh makes the limits.h of it. In any other build nobody looks at what is
 * drawn.
 */
#ifndef TESTS_SIM_BOUNDS_H
#define TESTS_SIM_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

struct sim_bounds {
    /* Rules of the engines. */
    unsigned waiters;
    unsigned extensions; /* of one token */
    unsigned hold_ttls;  /* max_hold, as so many max_ttl */
    /* Each in place of the LIMIT_* of its name. */
    unsigned client_requests;
    unsigned rounds;
    unsigned locks;
    unsigned holds;
    unsigned renewals;
    unsigned breaks;
    unsigned extended;
    unsigned link_commands;
    unsigned link_key_probes;
    unsigned link_releases;
    unsigned link_votes;
    unsigned link_kept;
    unsigned link_pending_releases;
    unsigned link_releases_under_way;
    bool crowded; /* and there are more clients, who repeat themselves, and ask much at once */
};

/* Of the schedule that runs. The engines read it, as they would read a constant. */
extern struct sim_bounds sim_bounds;

/* Those of this seed: each is tight or never met, so that one is not always met before the others.
 */
void bounds_draw(uint64_t seed);

/* Are they what the engines of this build go by? */
bool bounds_are_in_force(void);
/* ... and is there a crowd to meet them? */
bool bounds_are_crowded(void);

/* Those of which it is told whether schedules meet them. */
#define BOUND_TABLE(X)                                                                             \
    X(waiters)                                                                                     \
    X(pending_requests)                                                                            \
    X(rounds)                                                                                      \
    X(locks)                                                                                       \
    X(holds)                                                                                       \
    X(renewals)                                                                                    \
    X(breaks)                                                                                      \
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

/* At the end of a pass of a daemon's loop: count which are met. */
void bounds_note(const struct engine *engine, uint64_t *met);

/* ... and one that was passed, in a word; NULL: none. */
const char *bounds_passed(const struct engine *engine);

/* What LIMIT may name, as an answer to a request of one's own. */
#define LIMITED_TABLE(X)                                                                           \
    X(requests)                                                                                    \
    X(operations)                                                                                  \
    X(waiters)                                                                                     \
    X(waiters_per_resource)                                                                        \
    X(holds)                                                                                       \
    X(breaks)                                                                                      \
    X(extensions)                                                                                  \
    X(hold)

enum limited {
#define X(name) LIMITED_##name,
    LIMITED_TABLE(X)
#undef X
        LIMITED /* none of them */
};

const char *limited_word(enum limited limited);
enum limited limited_of(const char *word);

/* No room for another round, or another request? */
bool bounds_leave_no_operation(const struct engine *engine);

#endif
