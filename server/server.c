#include "server/server.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "protocol/units.h"
#include "server/clock.h"
#include "server/rules.h"

/* How long rounds in flight may continue after the shutdown has begun, how long the shutdown may
 * take in all, and how often the daemon checks whether the shutdown is complete. */
#define DRAIN_ROUNDS_NS (3 * NS_PER_S / 2)
#define DRAIN_NS        (2 * NS_PER_S)
#define DRAIN_CHECK_MS  5

/* Clients that arrive during the start wait for the masters' votes, for at most START_STEPS steps
 * of START_STEP_NS: 2 s in all. That is two heartbeats, in which other daemons attest the clocks,
 * and less than half of libredlock's timeout. The wait is counted in steps, not in time, because
 * the daemon does not hear the masters while it is stopped or gets no CPU. Such a pause counts as
 * one step. */
enum { START_STEPS = 20 };
#define START_STEP_NS (NS_PER_S / 10)

/* How long a task (--bootstrap, --reset-set or --probe) waits for the masters, and how often the
 * daemon checks whether the task is done. */
#define TASK_NS       (5 * NS_PER_S)
#define TASK_CHECK_MS 10

/* --- time --- */

static void set_timer(struct server *server)
{
    int64_t deadline_ns = engine_deadline_ns(server->engine);
    /* If the deadline has moved later, leave the timer as it is. It then fires too early and is set
     * again, which is cheaper than setting it with every reply. A deadline that has passed for
     * masters is handled by server_on_late(). */
    if (deadline_ns >= server->timer_ns || server->heard_ns != 0)
        return;
    /* The time 0 would disarm the timer. With the time 1, which is in the past, it fires at once.
     */
    int64_t at_ns = deadline_ns > 0 ? deadline_ns : 1;
    const struct itimerspec at = {
        .it_value = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S}};
    server->timer_ns = deadline_ns;
    int failed = timerfd_settime(server->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    assert(failed == 0);
}

static void server_on_timer(evutil_socket_t fd, short events, void *context)
{
    struct server *server = context;
    uint64_t fired;
    (void)events;
    /* Without this read, the descriptor stays readable. The number of expirations that it returns
     * does not matter. */
    (void)!read(fd, &fired, sizeof(fired));
    int64_t now_ns = clock_now_ns();
    histogram_add(&server->lag, now_ns - server->timer_ns);
    server->timer_ns = INT64_MAX;
    engine_catch_up(server->engine, now_ns);
    /* What is still due concerns masters. If this daemon was busy or stopped, their answers may be
     * waiting in the sockets. So read all sockets once more before anything is judged late. */
    if (engine_deadline_ns(server->engine) <= now_ns && server->heard_ns == 0) {
        server->heard_ns = now_ns;
        pass_run_in_next(server->late);
    }
    pass_want_end(&server->pass);
}

/* libevent calls this after the callbacks of the sockets that the next poll has found ready.
 * Masters are read by deferred callbacks, which the former callbacks activate. So this function
 * activates itself once more, to run after them too. */
static void server_on_late(evutil_socket_t fd, short events, void *context)
{
    struct server *server = context;
    (void)fd;
    if (events & EV_TIMEOUT) {
        event_active(server->late, EV_READ, 0);
        return;
    }
    int64_t heard_ns = server->heard_ns;
    server->heard_ns = 0;
    engine_on_timer(server->engine, heard_ns, clock_now_ns());
    pass_want_end(&server->pass);
}

/* --- the start --- */

/* Whether this master can get its vote during the remaining start steps, while clients wait. */
static bool may_vote_soon(const struct server *server, unsigned node, int64_t now_ns)
{
    const struct master_view master = engine_view_master(server->engine, node, now_ns);
    if (master.state == LINK_DOWN)
        return master.attempts == 0 ||
               node_has_more(&server->connections.nodes[node][CHANNEL_COMMANDS]);
    if (master.state != LINK_UP)
        return true;
    switch (master.vote) {
    case REASON_NONE:
    case REASON_UNCHECKED:
    case REASON_CLOCK:
    case REASON_CLOCK_UNPROVEN: /* another daemon may attest the clock */
    case REASON_BACKLOG:
        return true;
    default:
        return master.vote_ns <= now_ns + server->start_steps * START_STEP_NS;
    }
}

/* Whether to accept clients now. A LOCK served before the masters have answered would get NOQUORUM
 * although the masters are up. So the daemon accepts clients once a quorum votes, or once a quorum
 * is out of reach. During the first two steps, it waits for every master that may still vote: when
 * a master comes up for the first time, the other masters lose their votes until this master has
 * reported its name leases. One step would not do: if the daemon is stopped, the first step is over
 * as soon as the daemon continues. */
static bool may_serve(const struct server *server, int64_t now_ns)
{
    unsigned candidates = 0;
    const struct engine_view view = engine_view(server->engine);
    for (unsigned i = 0; i < view.node_count; i++)
        candidates += may_vote_soon(server, i, now_ns);
    if (server->connections.votes < view.quorum)
        return candidates < view.quorum;
    return server->connections.votes >= candidates || server->start_steps < START_STEPS - 1;
}

static void serve(struct server *server)
{
    event_del(server->started);
    clients_accept(&server->clients);
}

static void server_on_started(evutil_socket_t fd, short events, void *context)
{
    struct server *server = context;
    const struct timeval step = clock_delay(START_STEP_NS);
    (void)fd;
    (void)events;
    assert(server->start_steps > 0);
    if (--server->start_steps == 0)
        serve(server);
    else
        event_add(server->started, &step);
    pass_want_end(&server->pass);
}

/* --- passes of the loop --- */

static void watch_overload(struct server *server)
{
    struct overload_log *overload = &server->overload_log;
    size_t held_back = engine_held_back(server->engine);
    if (!overload_log_is_due(overload, held_back))
        return;
    int64_t now_ns = clock_now_ns();
    enum overload_news news = overload_log_step(overload, held_back, now_ns);
    if (news == OVERLOAD_BEGINS)
        log_event(&server->log, CONFIG_LOG_WARNING, "overload_started",
                  LOG_FIELDS(log_number("held_back", (int64_t)held_back),
                             log_number("rounds_limit", engine_view(server->engine).limit),
                             log_text("meaning", "requests wait for their rounds to start, because "
                                                 "the masters or this daemon are too slow for the "
                                                 "load")));
    if (news == OVERLOAD_ENDS)
        log_event(&server->log, CONFIG_LOG_INFO, "overload_ended",
                  LOG_FIELDS(log_number("seconds", (now_ns - overload->began_ns) / NS_PER_S),
                             log_number("most_held_back", (int64_t)overload->most),
                             log_number("busy", (int64_t)engine_view(server->engine).stats->busy)));
}

/* Runs after all events that were active when a module first called pass_want_end(). It appends the
 * guard's probes to the votes requested in this pass, sends all output, and sets the timer for the
 * next deadline. */
static void server_on_pass_end(evutil_socket_t fd, short events, void *context)
{
    struct server *server = context;
    (void)fd;
    (void)events;
    if (engine_wants_flush(server->engine))
        engine_flush(server->engine, clock_now_ns());
    broadcast_flush(&server->connections.broadcast, &server->streams);
    clients_on_pass_end(&server->clients);
    watch_overload(server);
    if (!server->task.task_only)
        node_log_no_quorum(&server->connections);
    if (server->clients.starting && may_serve(server, clock_now_ns()))
        serve(server);
    pass_ended(&server->pass);
    if (engine_wants_flush(server->engine))
        pass_want_end(&server->pass);
    set_timer(server);
}

/* --- shutdown --- */

static void server_on_drain(evutil_socket_t fd, short events, void *context)
{
    struct server *server = context;
    const struct timeval again = {.tv_usec = DRAIN_CHECK_MS * 1000};
    (void)fd;
    (void)events;
    int64_t now_ns = clock_now_ns();
    bool rounds_over = now_ns >= server->drain_until_ns - DRAIN_NS + DRAIN_ROUNDS_NS;
    if (rounds_over)
        engine_abandon(server->engine, now_ns);
    engine_flush(server->engine, now_ns);
    /* Rounds may have ended, so that clients are read again. */
    pass_want_end(&server->pass);
    /* The loop ends when all replies and releases have been sent, or at drain_until_ns. */
    bool busy = connections_have_unsent(&server->connections) ||
                clients_have_unsent(&server->clients) ||
                (!rounds_over && engine_busy(server->engine));
    if (busy && now_ns < server->drain_until_ns)
        event_add(server->drain, &again);
    else
        event_base_loopbreak(server->base);
}

/* --- tasks: --bootstrap, --reset-set and --probe --- */

/* Log each master on which a daemon of the old set has left a sign of life. False if there is no
 * such master. */
static bool log_old_daemons(const struct server *server)
{
    bool any = false;
    for (unsigned i = 0; i < server->config->node_count; i++) {
        const struct master_view master = engine_view_master(server->engine, i, clock_now_ns());
        if (server->task.reset_set == NULL || master.old_set_daemon == NULL)
            continue;
        any = true;
        log_event(
            &server->log, CONFIG_LOG_ERROR, "old_daemon_runs",
            LOG_FIELDS(log_text("node", server->config->nodes[i].name),
                       log_text("daemon", master.old_set_daemon),
                       log_text("advice",
                                "find its host with CLIENT LIST on this master (name=redlockd), "
                                "stop redlockd.socket and redlockd.service there, and try again")));
    }
    return any;
}

static void finish_task(struct server *server, enum engine_progress progress, unsigned node)
{
    const char *task = server->task.reset_set != NULL ? "reset_set" : "bootstrap";
    server->failed = progress != ENGINE_DONE;
    enum reason reason = engine_view_master(server->engine, node, clock_now_ns()).vote;
    bool old_runs = progress != ENGINE_DONE && log_old_daemons(server);
    if (progress == ENGINE_DONE)
        log_event(&server->log, CONFIG_LOG_INFO, "task_done",
                  LOG_FIELDS(log_text("task", task), log_text("cluster", server->config->cluster),
                             log_text("set", engine_view(server->engine).set_id),
                             log_number("nodes", server->config->node_count)));
    else
        log_event(
            &server->log, CONFIG_LOG_ERROR, "task_refused",
            LOG_FIELDS(
                log_text("task", task), log_text("node", server->config->nodes[node].name),
                log_text(
                    "why",
                    old_runs
                        ? "a daemon of the old set still runs and may grant locks; stop it first"
                    : progress == ENGINE_UNDER_WAY
                        ? "the master was not ready in time; all masters must be up"
                    : server->task.reset_set != NULL && reason == REASON_NEW
                        ? "no master of the new list belongs to the old set; keep at least one"
                    : server->task.reset_set != NULL
                        ? "the master's record belongs to neither the old set nor the new one"
                    : reason == REASON_OTHERSET
                        ? "the master belongs to another set: correct the configuration, or follow "
                          "\"Changing the list of nodes\""
                        : "the master already has a record, so it is not new; start without "
                          "--bootstrap"),
                log_text(reason != REASON_UNCHECKED ? "reason" : NULL, reason_word(reason))));
    event_base_loopbreak(server->base);
}

/* Finish the task if it is done or refused, or if its time is over. True if the daemon still has to
 * wait for masters. */
static bool run_task(struct server *server, bool late)
{
    unsigned node = 0;
    enum engine_progress progress = engine_progress(server->engine, &node);
    if (progress == ENGINE_UNDER_WAY && !late)
        return true;
    finish_task(server, progress, node);
    return false;
}

static bool run_probe(struct server *server, bool late, int64_t now_ns)
{
    if (!probe_step(&server->probe, now_ns) && !late)
        return true;
    server->failed = !probe_report(&server->probe, now_ns, stdout);
    event_base_loopbreak(server->base);
    return false;
}

static void server_on_progress(evutil_socket_t fd, short events, void *context)
{
    struct server *server = context;
    const struct timeval again = {.tv_usec = TASK_CHECK_MS * 1000};
    (void)fd;
    (void)events;
    int64_t now_ns = clock_now_ns();
    /* --reset-set waits longer: the masters remember a daemon of the old set for
     * ENGINE_DAEMON_TIMEOUT_NS after it has stopped. Until then it looks like a running one. */
    int64_t most_ns = server->task.reset_set != NULL ? TASK_NS + ENGINE_DAEMON_TIMEOUT_NS : TASK_NS;
    bool late = now_ns - server->started_ns > most_ns;
    if (server->task.probe ? run_probe(server, late, now_ns) : run_task(server, late))
        event_add(server->progress, &again);
}

static void server_on_signal(evutil_socket_t fd, short events, void *context)
{
    struct server *server = context;
    (void)events;
    if (server->drain_until_ns != 0)
        return;
    if (fd == SIGHUP && server->task.config_file != NULL) {
        reload(server);
        return;
    }
    char name[16];
    snprintf(name, sizeof(name), "SIG%s", sigabbrev_np(fd));
    log_event(
        &server->log, CONFIG_LOG_INFO, "stopping",
        LOG_FIELDS(log_text("signal", name), log_number("clients", server->clients.session_count)));
    notifier_stopping(&server->notifier);
    server->drain_until_ns = clock_now_ns() + DRAIN_NS;
    listeners_stop(&server->clients);
    engine_drain(server->engine, clock_now_ns());
    event_active(server->drain, 0, 0);
}

/* --- setting up --- */

static void do_nothing(int signal_number)
{
    (void)signal_number;
}

/* The daemon does not use libevent's own timers for the engine. They fire 1 to 4 ms late, which
 * would delay every node_timeout, and libevent's precise timers cost a system call in each pass.
 * Neither kind counts suspended time, which the deadlines include. */
static bool start_timer(struct server *server)
{
    server->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (server->timer_fd < 0)
        return false;
    server->timer =
        event_new(server->base, server->timer_fd, EV_READ | EV_PERSIST, server_on_timer, server);
    return server->timer != NULL && event_add(server->timer, NULL) == 0;
}

static bool start_loop(struct server *server)
{
    log_adopt_libevent(&server->log);
    server->base = event_base_new();
    if (server->base == NULL || !start_timer(server))
        return false;
    server->late = event_new(server->base, -1, 0, server_on_late, server);
    server->drain = event_new(server->base, -1, 0, server_on_drain, server);
    server->progress = event_new(server->base, -1, 0, server_on_progress, server);
    server->started = event_new(server->base, -1, 0, server_on_started, server);
    /* libevent replaces these handlers and restores them when its signal events are freed. So the
     * handlers do nothing: a second SIGTERM must not interrupt the cleanup. SIG_IGN is not used,
     * because it would discard a signal that has arrived while main() blocked it. With --dev,
     * SIGHUP means that the terminal was closed, and it ends the daemon. */
    static const int signals[SERVER_SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < SERVER_SIGNALS; i++) {
        signal(signals[i], do_nothing);
        server->signals[i] = evsignal_new(server->base, signals[i], server_on_signal, server);
        if (server->signals[i] == NULL || event_add(server->signals[i], NULL) != 0)
            return false;
    }
    return pass_init(&server->pass, server->base, server_on_pass_end, server) &&
           streams_init(&server->streams, server->base, &server->pass) &&
           tls_sockets_init(&server->tls_sockets, &server->pass) &&
           resolver_init(&server->resolver, server->base) && server->late != NULL &&
           server->drain != NULL && server->progress != NULL && server->started != NULL;
}

static bool start_engine(struct server *server)
{
    struct engine_rules rules = rules_of(server->config);
    clock_read_id(server->clock_id, sizeof(server->clock_id));
    rules.clock_id = server->clock_id;
    rules.bootstrap = server->task.trust_masters;
    rules.reset_set = server->task.reset_set;
    rules.read_only = server->task.probe;
    const struct engine_io io = server_io(server);
    server->engine = engine_new(&rules, &io, server->started_ns);
    return server->engine != NULL;
}

/* Set the fields owned by the server, then let the module initialise its own. */
static bool start_clients(struct server *server)
{
    const struct engine_rules rules = rules_of(server->config);
    server->clients = (struct clients){
        .config = server->config,
        .log = &server->log,
        .base = server->base,
        .pass = &server->pass,
        .engine = server->engine,
        .random = &server->random,
        .streams = &server->streams,
        .tls_sockets = &server->tls_sockets,
        .request_limits = rules_request_limits(&rules),
        .started_ns = server->started_ns,
    };
    return clients_init(&server->clients);
}

/* Set the fields owned by the server, then let the module initialise its own. */
static bool start_connections(struct server *server)
{
    server->connections = (struct connections){
        .config = server->config,
        .log = &server->log,
        .base = server->base,
        .pass = &server->pass,
        .resolver = &server->resolver,
        .streams = &server->streams,
        .tls_sockets = &server->tls_sockets,
        .engine = server->engine,
        .bootstrap = server->task.trust_masters,
        .started_ns = server->started_ns,
        .no_quorum_ns = server->started_ns,
    };
    server->probe.connections = &server->connections;
    return connections_init(&server->connections);
}

static bool start_admin(struct server *server)
{
    const struct config_address *const addresses[] = {&server->config->admin,
                                                      &server->config->metrics};
    struct error error;
    if (!admin_start(&server->admin, server, &error)) {
        log_event(&server->log, CONFIG_LOG_ERROR, "listen_failed",
                  LOG_FIELDS(log_text("why", error.text)));
        return false;
    }
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
        if (addresses[i]->host != NULL)
            log_event(&server->log, CONFIG_LOG_INFO, "listening",
                      LOG_FIELDS(log_text("address", addresses[i]->url)));
    return true;
}

/* Start the parts that can fail only for lack of memory or descriptors. They log nothing. */
static bool start_parts(struct server *server)
{
    return random_init(&server->random) && start_loop(server) && start_engine(server) &&
           start_clients(server) && start_connections(server);
}

static bool log_shortage(const struct server *server)
{
    log_event(&server->log, CONFIG_LOG_ERROR, "start_failed",
              LOG_FIELDS(log_text("why", "not enough memory or too few file descriptors")));
    return false;
}

static bool start(struct server *server)
{
    const struct timeval step = clock_delay(START_STEP_NS);
    if (!start_parts(server))
        return log_shortage(server);
    if (!connections_load_tls(&server->connections))
        return false;
    server->clients.limit = rules_clients(server->config, &server->log);
    pass_want_end(&server->pass);
    if (server->task.task_only) {
        event_active(server->progress, 0, 0);
        return true;
    }
    server->clients.starting = true;
    server->start_steps = START_STEPS;
    event_add(server->started, &step);
    if (!listeners_start(&server->clients) || !start_admin(server))
        return false;
    return notifier_start(&server->notifier, server) || log_shortage(server);
}

bool server_start(struct server *server, struct config *config, const struct log *log,
                  const struct server_task *task)
{
    *server = (struct server){
        .config = config, .log = *log, .timer_fd = -1, .timer_ns = INT64_MAX, .task = *task};
    server->started_ns = clock_now_ns();
    status_history_init(&server->history, server->started_ns);
    if (start(server))
        return true;
    server_stop(server);
    return false;
}

bool server_run(struct server *server)
{
    event_base_dispatch(server->base);
    if (server->failed || server->task.task_only)
        return !server->failed && server->drain_until_ns == 0;
    log_event(&server->log, CONFIG_LOG_INFO, "stopped",
              LOG_FIELDS(log_text(
                  "locks", server->task.trust_masters
                               ? "deleted with the temporary masters"
                               : "granted locks stay on the masters until released or expired")));
    return true;
}

void server_stop(struct server *server)
{
    notifier_stop(&server->notifier);
    admin_stop(&server->admin);
    clients_free_sessions(&server->clients);
    /* The end of the sessions has caused commands to the masters, mainly releases. Send them. */
    if (server->streams.scratch != NULL)
        broadcast_flush(&server->connections.broadcast, &server->streams);
    clients_deinit(&server->clients);
    connections_deinit(&server->connections);
    streams_deinit(&server->streams);
    engine_free(server->engine);
    struct event *events[] = {server->timer,      server->late,       server->drain,
                              server->progress,   server->signals[0], server->signals[1],
                              server->signals[2], server->started};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (events[i] != NULL)
            event_free(events[i]);
    pass_deinit(&server->pass);
    if (server->timer_fd >= 0)
        close(server->timer_fd);
    /* Even after bufferevent_free(), libevent keeps a bufferevent until its deferred callbacks have
     * run. So let them run before the event base is freed. */
    if (server->base != NULL)
        resolver_settle(server->base);
    resolver_deinit(&server->resolver);
    if (server->base != NULL)
        event_base_free(server->base);
    tls_sockets_deinit(&server->tls_sockets);
    random_deinit(&server->random);
    log_adopt_libevent(NULL);
}
