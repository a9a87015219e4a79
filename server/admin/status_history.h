/*
 * What the admin page shows of the last minutes: round trips, grants, losses, and since when a node
 * has had no vote. Everything in lists of fixed size, the newest first; the oldest goes. Pure: time
 * comes in.
 */
#ifndef SERVER_ADMIN_STATUS_HISTORY_H
#define SERVER_ADMIN_STATUS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/reason.h"

/* One sample a second, five minutes of them; and the last losses. */
enum { STATUS_HISTORY_SAMPLES = 300, STATUS_HISTORY_LOSSES = 20 };

/* What is known of one second. */
struct status_history_sample {
    uint64_t granted;                   /* locks, since the start */
    int32_t round_trip_us[LIMIT_NODES]; /* the last; -1 none: the node does not answer */
    uint32_t voting;                    /* nodes */
};

/* A HOLD that was lost. No token: that is the right to release. */
struct status_history_loss {
    int64_t wall_ns;
    unsigned loss; /* enum engine_loss */
    size_t resource_len;
    char resource[LIMIT_RESOURCE];
    char client[LIMIT_TAG + 1]; /* by NAME; "" without one */
};

struct status_history {
    struct status_history_sample samples[STATUS_HISTORY_SAMPLES];
    unsigned sample_count;
    struct status_history_loss losses[STATUS_HISTORY_LOSSES];
    unsigned loss_count;
    int64_t no_vote_ns[LIMIT_NODES]; /* since when it has none; 0: it has */
};

/* No node has a vote. */
void status_history_init(struct status_history *history, int64_t now_ns);

/* Of the last second. */
void status_history_take(struct status_history *history,
                         const struct status_history_sample *sample);

/* The sample so many seconds ago; NULL if there is none. */
const struct status_history_sample *status_history_ago(const struct status_history *history,
                                                       unsigned seconds);

/* Locks granted in each second, on average over up to so many of them. */
double status_history_grants_a_second(const struct status_history *history, unsigned seconds);

/* resource: at most LIMIT_RESOURCE bytes. */
void status_history_on_lost(struct status_history *history, const char *resource,
                            size_t resource_len, const char *client, unsigned loss,
                            int64_t wall_ns);

/* The loss before so many others; NULL if there is none. */
const struct status_history_loss *status_history_loss(const struct status_history *history,
                                                      unsigned others);

/* A node has lost its vote, or got it back. */
void status_history_on_vote(struct status_history *history, unsigned node, enum reason reason,
                            int64_t now_ns);

#endif
