/*
 * The daemon around the engine: one event loop, the connections to the masters, the listeners and
 * the sessions.
 *
 *     requests.c  bytes of a client  -> request_parse -> engine_submit
 *     node.c      bytes of a master  -> resp_next     -> engine_on_replies
 *     server.c    the engine's next deadline          -> engine_on_timer
 *
 * Each callback reads the clock, translates its event and calls the engine, which makes all
 * decisions. If a callback finds that a session must be dropped or can be read from again, it only
 * marks the session. A sweep after the pass does the work, so no session is freed inside its own
 * callback.
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
#include "server/overload_log.h"
#include "server/probe.h"
#include "server/random.h"

enum { SERVER_SIGNALS = 3 };

/* What the daemon is to do at its start, from the command line. */
struct server_task {
    bool trust_masters;      /* the masters are new and hold no lock (--bootstrap or --dev) */
    const char *reset_set;   /* id of the set that this daemon's set replaces; NULL: none */
    bool probe;              /* check the masters and report what keeps them from voting */
    bool task_only;          /* exit after the task; open no listeners */
    const char *config_file; /* the file to re-read on SIGHUP; "-" is standard input, which cannot
                                be re-read; NULL: SIGHUP ends the daemon as SIGTERM does */
};

struct server {
    struct config *config; /* owned by the caller; only a reload changes it */
    struct log log;
    struct event_base *base;
    struct pass pass; /* runs server_on_pass_end() at the end of each pass */
    struct resolver resolver;
    struct random random;
    struct streams streams; /* the streams of clients and masters */
    struct tls_sockets tls_sockets;

    struct engine *engine;
    char clock_id[ENGINE_CLOCK_ID_MAX];
    struct connections connections; /* to the masters */

    struct clients clients;

    /* Metrics and the status page. */
    struct admin admin;
    struct status_history history;
    struct histogram lag; /* how late the engine's timer fired */
    struct overload_log overload_log;

    int timer_fd; /* CLOCK_BOOTTIME timer for the engine's next deadline */
    struct event *timer;
    int64_t timer_ns;   /* when the timer fires; INT64_MAX if it is not set */
    struct event *late; /* after one more poll: judges rounds and masters late as of heard_ns */
    int64_t heard_ns;   /* when that poll was requested; 0: `late` is not added */
    struct event *signals[SERVER_SIGNALS];
    struct notifier notifier;
    struct event *started;  /* during the start: counts start_steps down; see server_on_started() */
    unsigned start_steps;   /* remaining steps; at 0 clients are accepted even without a quorum */
    struct event *drain;    /* while stopping: checks whether the shutdown is complete */
    struct event *progress; /* with task.task_only: checks whether the task is done */
    struct server_task task;
    struct probe probe;
    bool reload_refused;    /* the last reload was refused */
    bool failed;            /* the task or the start failed: exit with an error */
    int64_t drain_until_ns; /* when the shutdown ends at the latest; 0: not stopping */
    int64_t started_ns;
};

/*
 * Set everything up and listen. False on failure: the reason has been logged, and everything has
 * been released.
 */
bool server_start(struct server *server, struct config *config, const struct log *log,
                  const struct server_task *task);

/*
 * Run the event loop until the task is done, or until SIGTERM or SIGINT and the orderly shutdown
 * that follows. False if the start or the task failed, or if a signal interrupted the task; the
 * reason has been logged.
 */
bool server_run(struct server *server);
void server_stop(struct server *server);

/* The callbacks through which the engine acts (server_io.c). */
struct engine_io server_io(struct server *server);

/* Reload the configuration, on SIGHUP (reload.c). */
void reload(struct server *server);

#endif
