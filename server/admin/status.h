/*
 * How the daemon is, at one moment: what the status page and /readyz say. A plain copy of what they
 * show, so that who writes it down (server/admin/page.h, server/admin/status_text.c) is pure.
 */
#ifndef SERVER_ADMIN_STATUS_H
#define SERVER_ADMIN_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/master/link.h"
#include "protocol/limits.h"
#include "protocol/reason.h"
#include "protocol/text.h"
#include "server/admin/monitor.h"

struct server;

enum {
    STATUS_QUEUES = 10,     /* shown: those in which most wait */
    STATUS_LOOKED_AT = 4096 /* so many resources are looked at to find them: a fraction of 1 ms */
};

struct status_node {
    const char *name;
    const char *url;
    enum link_state state;
    enum reason reason;    /* why it has no vote; REASON_NONE: it has */
    int64_t no_vote_ms;    /* for so long */
    int64_t back_ms;       /* in so long it has one again; -1: that is no matter of time */
    int64_t round_trip_us; /* of the last heartbeat; -1 none */
    unsigned owed;         /* releases */
};

struct status_queue {
    char resource[LIMIT_RESOURCE];
    size_t resource_len;
    unsigned waits;
    bool asking; /* a round is under way for the first in line */
    bool held;   /* granted through this daemon; else these mean nothing */
    bool hold;   /* with HOLD */
    char client[LIMIT_TAG + 1];
    uint64_t client_id;
    int64_t held_ms;
    int64_t left_ms;
};

struct status {
    const char *cluster;
    const char *version;
    int64_t uptime_ms;
    int64_t wall_ns;
    bool stopping;

    unsigned node_count;
    unsigned quorum;
    unsigned voting;
    int64_t back_ms; /* below a quorum: when there is one again; -1: that is no matter of time */
    struct status_node nodes[LIMIT_NODES];

    double grants_a_second; /* in the last ten */
    size_t waiting;
    size_t waited_for; /* resources */
    size_t holds;
    size_t clients;
    size_t clients_max;

    unsigned queue_count;
    struct status_queue queues[STATUS_QUEUES];
    const struct monitor *monitor;
};

void status_take(struct status *status, const struct server *server, int64_t now_ns);

/* Can a lock be granted? */
bool status_is_ready(const struct status *status);

/* For /readyz: one line, and one for each node that has no vote. */
void status_write_ready(const struct status *status, struct text *text);

/* For scripts: all of it, save the samples. */
void status_write_json(const struct status *status, struct text *text);

#endif
