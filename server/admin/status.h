/*
 * How the daemon is, at one moment: what NODES, STATS, LOCKS, /readyz, /status.json, the status
 * page and the metrics say. A copy of what they show, filled in one place: so the renderers are
 * pure, and say the same. Its texts are views of what the daemon has, so a status must be rendered
 * before the event loop goes on.
 */
#ifndef SERVER_ADMIN_STATUS_H
#define SERVER_ADMIN_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "protocol/limits.h"
#include "protocol/reason.h"
#include "protocol/text.h"
#include "server/admin/process.h"
#include "server/admin/status_history.h"
#include "server/clients/listener.h"

struct clients;
struct server;

enum {
    STATUS_QUEUES = 10,     /* shown: those in which most wait */
    STATUS_LOOKED_AT = 4096 /* so many resources are looked at to find them: a fraction of 1 ms */
};

struct status_node {
    const char *name;
    const char *url;
    enum link_state state;
    int64_t state_ms;      /* for so long */
    enum reason reason;    /* why it has no vote; REASON_NONE: it has */
    int64_t no_vote_ns;    /* for so long; 0: it has one */
    int64_t back_ms;       /* in so long it has one again; -1: that is no matter of time */
    int64_t round_trip_us; /* of the last heartbeat; -1 none */
    struct histogram round_trips;
    bool tracking;             /* it tells of changes that waiters wait for */
    uint64_t unanswered;       /* commands */
    uint64_t pending_releases; /* releases */
    uint64_t forgotten;        /* releases it was pending_releases that could not be remembered */
    bool clock_compared;       /* else these mean nothing */
    int64_t clock_low_ns; /* its wall clock is ahead of this host's by so much at least, at most */
    int64_t clock_high_ns;
};

/* A resource that is locked through this daemon, or waited for here. */
struct status_lock {
    const char *resource;
    size_t resource_len;
    unsigned queued;    /* requests in line */
    unsigned waits;     /* ... that are LOCKs with WAIT */
    unsigned place;     /* of the client that asks, the first of its places; 0: none */
    bool asking;        /* a round is under way for the first in line */
    bool held;          /* granted through this daemon; else these mean nothing */
    bool hold;          /* with HOLD */
    char token[9];      /* its first digits: the whole is the right to release */
    const char *client; /* by NAME; "" without one */
    uint64_t client_id;
    int64_t held_ms;
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

    unsigned node_count;
    unsigned quorum;
    unsigned voting;
    int64_t back_ms; /* below a quorum: when there is one again; -1: that is no matter of time */
    struct status_node nodes[LIMIT_NODES];

    struct engine_stats stats;
    size_t rounds_in_flight; /* rounds with a command under way */
    size_t locks;            /* granted through this daemon, and remembered */
    size_t holds;            /* ... with HOLD */
    size_t holding;          /* HOLDs that were granted or are asked for */
    size_t waiting;          /* LOCKs with WAIT */
    size_t waited_for;       /* resources */

    size_t clients;
    size_t clients_max;
    size_t unauthenticated; /* of the clients, for now */
    /* Since the start: */
    uint64_t accepted; /* connections */
    uint64_t rejected[LISTENER_REFUSAL_COUNT];
    uint64_t auth_late; /* closed before they had authenticated */
    uint64_t auth_displaced;
    uint64_t wrong_secrets;
    uint64_t tls_failed;
    uint64_t admin_rejected;
    uint64_t requests[VERB_COUNT];
    uint64_t request_errors[REQUEST_ERRORS];
    uint64_t denied;
    struct histogram lag; /* of timers */

    const struct process *process;        /* what the kernel knows of it */
    const struct status_history *history; /* the last minutes */
    double grants_a_second;               /* in the last ten seconds */

    /* By status_take_queues(), the longest first. */
    unsigned queue_count;
    struct status_lock queues[STATUS_QUEUES];

    /* By which the Content-Security-Policy of a page lets its style and its script run. */
    const char *nonce;
};

/* All but the queues and the nonce. */
void status_take(struct status *status, const struct server *server, int64_t now_ns);

/* As much of it as listings show: the masters, the locks and the clients. */
void status_take_clients(struct status *status, const struct clients *clients, int64_t now_ns);

/* The queues, too: a walk over the resources that are waited for. */
void status_take_queues(struct status *status, const struct engine *engine, int64_t now_ns);

/* One resource, but for the place in line of a client: engine_place() knows that. */
struct status_lock status_lock_of(const struct resource_view *resource, int64_t now_ns);

/* Can a lock be granted? */
bool status_is_ready(const struct status *status);

/* The words of requests that are rounds, and of their outcomes, as STATS and the metrics have them:
 * "unlock", "noquorum". */
const char *status_kind_word(unsigned kind);
const char *status_outcome_word(unsigned outcome);

/* A line of NODES, of LOCKS, and both kinds of STATS. */
void status_write_node(const struct status_node *node, struct text *text);
void status_write_lock(const struct status_lock *lock, struct text *text);
void status_write_daemon(const struct status *status, struct text *text);
void status_write_outcomes(const struct status *status, unsigned kind, struct text *text);

/* What systemd shows: "4/5 voting, 312 locks". */
void status_write_short(const struct status *status, struct text *text);

/* For /readyz: one line, and one for each node that has no vote. */
void status_write_ready(const struct status *status, struct text *text);

/* For scripts: all of it, save the samples and the counters. */
void status_write_json(const struct status *status, struct text *text);

/*
 * The status page (page.c). It comes whole, as a snapshot that needs nothing else; its script then
 * fetches the part of it that lives each second. Without scripts it loads itself anew every five
 * seconds.
 */
void page_write(const struct status *status, struct text *text);
void page_write_live(const struct status *status, struct text *text);

/* What Prometheus is told (metrics.c). docs/operations.md has what each means to an operator. */
void metrics_write(const struct status *status, struct text *text);

#endif
