/*
 * The state of the daemon at one moment, from which NODES, STATS, LOCKS, /readyz, /status.json, the
 * status page and the metrics are rendered. It is a copy, filled in one place, so the renderers are
 * pure and agree with each other. Its strings point into the daemon's own data, so a status must be
 * rendered before the event loop continues.
 */
#ifndef SERVER_ADMIN_STATUS_H
#define SERVER_ADMIN_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "protocol/limits.h"
#include "protocol/reason.h"
#include "protocol/row.h"
#include "protocol/text.h"
#include "server/admin/process.h"
#include "server/admin/status_history.h"
#include "server/clients/listener.h"

struct clients;
struct server;

enum {
    STATUS_QUEUES = 10,           /* queues shown: those with the most waiters */
    STATUS_QUEUES_EXAMINED = 4096 /* resources examined to find those; takes less than 1 ms */
};

struct status_node {
    const char *name;
    const char *url;
    enum link_state state;
    int64_t state_ms;      /* time in this state */
    enum reason reason;    /* why it has no vote; REASON_NONE: it votes */
    int64_t no_vote_ns;    /* time without a vote; 0: it votes */
    int64_t back_ms;       /* time until it votes again; -1: waiting alone does not help */
    int64_t round_trip_us; /* of the last heartbeat; -1: none */
    struct histogram round_trips;
    bool tracking;             /* the master reports changes of keys that waiters need */
    uint64_t unanswered;       /* commands without a reply */
    uint64_t pending_releases; /* releases that the master has not confirmed */
    uint64_t forgotten;        /* pending releases dropped; see struct master_view */
    bool clock_compared;       /* the two bounds below are valid */
    int64_t clock_low_ns;      /* bounds of the master's wall clock minus this host's */
    int64_t clock_high_ns;
};

/* A resource that is locked or waited for through this daemon. */
struct status_lock {
    struct resource_view resource;
    unsigned place;  /* position in the queue of the client that requests the listing; 0: none */
    int64_t held_ms; /* if it is locked; otherwise 0, like left_ms */
    int64_t left_ms;
};

struct status {
    const char *cluster;
    const char *version;
    int pid;
    int64_t uptime_ns;
    int64_t wall_ns;
    bool stopping;
    bool reload_refused;

    struct engine_view engine; /* the rounds, locks and waiters, and the number of masters */
    unsigned voting;
    int64_t
        back_ms; /* without a quorum: time until there is one; -1: waiting alone does not help */
    struct status_node nodes[LIMIT_NODES];

    size_t clients;
    size_t clients_max;
    size_t unauthenticated; /* clients that have not authenticated yet */
    /* Totals since the start: */
    uint64_t accepted; /* client connections */
    uint64_t rejected[LISTENER_REFUSAL_COUNT];
    uint64_t auth_late; /* closed because auth_timeout passed */
    uint64_t auth_displaced;
    uint64_t wrong_secrets;
    uint64_t tls_failed;
    uint64_t admin_rejected; /* HTTP connections */
    uint64_t metrics_rejected;
    uint64_t requests[VERB_COUNT];
    uint64_t request_errors[REQUEST_ERRORS];
    uint64_t denied;
    struct histogram lag; /* how late timers fired */

    const struct process *process;        /* what the kernel reports */
    const struct status_history *history; /* the last five minutes */
    double grants_a_second;               /* average of the last ten seconds */

    /* Set by status_take_queues(), the longest queue first. */
    unsigned queue_count;
    struct status_lock queues[STATUS_QUEUES];

    /* The nonce of the page's style and script in its Content-Security-Policy. */
    const char *nonce;
};

/* Fill in everything but the queues and the nonce. */
void status_take(struct status *status, const struct server *server, int64_t now_ns);

/* Fill in what the listings show: the masters, the locks and the clients. */
void status_take_clients(struct status *status, const struct clients *clients, int64_t now_ns);

/* Fill in the queues. Walks over the resources that have waiters. */
void status_take_queues(struct status *status, const struct engine *engine, int64_t now_ns);

/* The status of one resource. `place` is not set: engine_queue_position() computes it for one
 * client. */
struct status_lock status_lock_of(const struct resource_view *resource, int64_t now_ns);

/* Whether locks can be granted. */
bool status_is_ready(const struct status *status);

/* The names of request kinds and outcomes in STATS and the metrics, such as "unlock" and
 * "noquorum". */
const char *status_kind_word(unsigned kind);
const char *status_outcome_word(unsigned outcome);

/* Write one row: of NODES, of LOCKS, the row of STATS for the daemon, and the row of STATS for one
 * kind of request. */
void status_write_node(const struct status_node *node, struct row *row);
void status_write_lock(const struct status_lock *lock, struct row *row);
void status_write_daemon(const struct status *status, struct row *row);
void status_write_outcomes(const struct status *status, unsigned kind, struct row *row);

/* The status line for systemd: "4/5 voting, 312 locks". */
void status_write_short(const struct status *status, struct text *text);

/* The body of /readyz: one line, and another for each node without a vote. */
void status_write_ready(const struct status *status, struct text *text);

/* The body of /status.json. It has neither the samples of the history nor the counters. */
void status_write_json(const struct status *status, struct text *text);

/*
 * The status page (page.c). The page is a complete snapshot. Its script then fetches the part in
 * <main> (/live) once a second, or every five seconds while the page is hidden. Without scripts the
 * page reloads every five seconds.
 */
void page_write(const struct status *status, struct text *text);
void page_write_live(const struct status *status, struct text *text);

/* The body of /metrics (metrics.c). docs/operations/monitoring.md says what the metrics mean to an
 * operator. */
void metrics_write(const struct status *status, struct text *text);

#endif
