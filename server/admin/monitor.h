/*
 * What the admin page shows of the last minutes: round trips, grants, losses, and since when a node
 * has had no vote. Everything in lists of fixed size, the newest first; the oldest goes. Pure: time
 * comes in.
 */
#ifndef SERVER_ADMIN_MONITOR_H
#define SERVER_ADMIN_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/reason.h"

/* One sample a second, five minutes of them; and the last losses. */
enum { MONITOR_SAMPLES = 300, MONITOR_LOSSES = 20 };

/* What is known of one second. */
struct monitor_sample {
    uint64_t granted;                   /* locks, since the start */
    int32_t round_trip_us[LIMIT_NODES]; /* the last; -1 none: the node does not answer */
    uint32_t voting;                    /* nodes */
};

/* A HOLD that was lost. No token: that is the right to release. */
struct monitor_loss {
    int64_t wall_ns;
    unsigned loss; /* enum engine_loss */
    size_t resource_len;
    char resource[LIMIT_RESOURCE];
    char client[LIMIT_TAG + 1]; /* by NAME; "" without one */
};

struct monitor {
    struct monitor_sample samples[MONITOR_SAMPLES];
    unsigned sample_count;
    struct monitor_loss losses[MONITOR_LOSSES];
    unsigned loss_count;
    int64_t no_vote_ns[LIMIT_NODES]; /* since when it has none; 0: it has */
};

/* No node has a vote. */
void monitor_init(struct monitor *monitor, int64_t now_ns);

/* Of the last second. */
void monitor_take(struct monitor *monitor, const struct monitor_sample *sample);

/* The sample so many seconds ago; NULL if there is none. */
const struct monitor_sample *monitor_ago(const struct monitor *monitor, unsigned seconds);

/* Locks granted in each second, on average over up to so many of them. */
double monitor_grants_a_second(const struct monitor *monitor, unsigned seconds);

/* resource: at most LIMIT_RESOURCE bytes. */
void monitor_on_lost(struct monitor *monitor, const char *resource, size_t resource_len,
                     const char *client, unsigned loss, int64_t wall_ns);

/* The loss before so many others; NULL if there is none. */
const struct monitor_loss *monitor_loss(const struct monitor *monitor, unsigned others);

/* A node has lost its vote, or got it back. */
void monitor_on_vote(struct monitor *monitor, unsigned node, enum reason reason, int64_t now_ns);

#endif
