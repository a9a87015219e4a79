/*
 * The last minutes, for the status page: round trips, grants, lost HOLDs, and since when each node
 * has had no vote. The lists have a fixed size and begin with the newest entry. A new entry drops
 * the oldest. Pure: the caller passes the time.
 */
#ifndef SERVER_ADMIN_STATUS_HISTORY_H
#define SERVER_ADMIN_STATUS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/reason.h"

/* One sample per second for five minutes, and the last 20 lost HOLDs. */
enum { STATUS_HISTORY_SAMPLES = 300, STATUS_HISTORY_LOSSES = 20 };

/* The state at the end of one second. */
struct status_history_sample {
    uint64_t granted;                   /* locks granted since the start */
    int32_t round_trip_us[LIMIT_NODES]; /* of the last heartbeat; -1: the node was not UP */
    uint32_t voting;                    /* number of nodes that vote */
};

/* A HOLD that was lost. The token is left out, because it is the right to release. */
struct status_history_loss {
    int64_t wall_ns;
    unsigned loss; /* enum engine_loss */
    size_t resource_len;
    char resource[LIMIT_RESOURCE];
    char client[LIMIT_TAG + 1]; /* set by NAME; "" if unset */
};

struct status_history {
    struct status_history_sample samples[STATUS_HISTORY_SAMPLES];
    unsigned sample_count;
    struct status_history_loss losses[STATUS_HISTORY_LOSSES];
    unsigned loss_count;
    int64_t no_vote_ns[LIMIT_NODES]; /* since when the node has had no vote; 0: it votes */
};

/* Starts with no node voting. */
void status_history_init(struct status_history *history, int64_t now_ns);

/* Add the sample of the last second. */
void status_history_take(struct status_history *history,
                         const struct status_history_sample *sample);

/* The sample taken `seconds` seconds before the last one; NULL if there is none. */
const struct status_history_sample *status_history_ago(const struct status_history *history,
                                                       unsigned seconds);

/* Locks granted per second: the average of the last `seconds` seconds, or of all samples if there
 * are fewer. */
double status_history_grants_a_second(const struct status_history *history, unsigned seconds);

/* A HOLD was lost. resource: at most LIMIT_RESOURCE bytes. loss: enum engine_loss. */
void status_history_on_lost(struct status_history *history, const char *resource,
                            size_t resource_len, const char *client, unsigned loss,
                            int64_t wall_ns);

/* The lost HOLD after which `others` more were lost; NULL if there is none. */
const struct status_history_loss *status_history_loss(const struct status_history *history,
                                                      unsigned others);

/* A node has lost or regained its vote. */
void status_history_on_vote(struct status_history *history, unsigned node, enum reason reason,
                            int64_t now_ns);

#endif
