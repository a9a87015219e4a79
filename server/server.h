/*
 * The daemon around the engine: one event loop, the links' connections, the listeners, the
 * sessions.
 *
 *     session.c  bytes of a client  -> request_parse -> engine_submit
 *     node.c     bytes of a master  -> resp_next     -> engine_on_replies
 *     timer      the engine's next deadline          -> engine_on_timer
 *
 * Each callback reads the clock, translates, and calls the engine; it decides nothing. What a
 * callback of the engine finds to do about a session (drop it, go on reading) is done by a sweep
 * after the pass, so that nothing is freed inside its own callback.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "config/config.h"
#include "engine/engine.h"
#include "engine/histogram.h"
#include "server/admin/admin.h"
#include "server/admin/status_history.h"
#include "server/clients/clients.h"
#include "server/log.h"
#include "server/masters/connections.h"
#include "server/net/pass.h"
#include "server/net/stream.h"
#include "server/net/tls.h"
#include "server/notifier.h"
#include "server/probe.h"
#include "server/random.h"

enum { SERVER_SIGNALS = 3 };

/* What a server is started for. */
struct server_task {
    bool trust_masters;    /* they are new and hold no lock: an operator says so, or --dev */
    const char *reset_set; /* the set with this id is to become ours; NULL without one */
    bool probe;            /* look at the masters, and tell what stands against them */
    bool only_that;        /* do no more than carry that out: no listeners, and an end */
    const char
        *config_file; /* SIGHUP: read it again ("-": it cannot be); NULL: end, as by SIGTERM */
};

struct server {
    struct config *config; /* changed by a reload alone; the caller's */
    struct log log;
    struct event_base *base;
    struct pass pass; /* at its end: server_on_pass_end() */
    struct resolver resolver;
    struct random random;
    struct streams streams; /* of the clients and the masters */
    struct tls_sockets tls_sockets;

    struct engine *engine;
    char clock_id[ENGINE_CLOCK_ID_MAX];
    struct connections connections; /* to the masters */

    struct clients clients;

    /* For metrics and the status page. */
    struct admin admin;
    struct status_history history;
    struct histogram lag; /* how late the timer fired */

    int timer_fd; /* of CLOCK_BOOTTIME: the engine's next deadline */
    struct event *timer;
    int64_t timer_ns; /* what it is set to; INT64_MAX if it is not */
    struct event *signals[SERVER_SIGNALS];
    struct notifier notifier;
    struct event *started;  /* clients have waited for another step: see may_serve() */
    unsigned start_steps;   /* for which clients still wait, at most */
    struct event *drain;    /* while stopping: looks whether all is done */
    struct event *progress; /* task->only_that: looks how far it is */
    struct server_task task;
    struct probe probe;
    bool reload_refused;    /* the last one was */
    bool failed;            /* the task, or the start: there is nothing to serve */
    int64_t drain_until_ns; /* 0: not stopping */
    int64_t started_ns;
};

/*
 * Set everything up and listen. On failure the reason has been logged and everything undone.
 */
bool server_start(struct server *server, struct config *config, const struct log *log,
                  const struct server_task *task);

/*
 * Run until SIGTERM or SIGINT, and through the orderly end; or until the task is carried
 * out. False if it could not be; the reason has been logged.
 */
bool server_run(struct server *server);
void server_stop(struct server *server);

/* What its engine needs done (server_io.c). */
struct engine_io server_io(struct server *server);

/* SIGHUP (reload.c). */
void reload(struct server *server);

#endif
