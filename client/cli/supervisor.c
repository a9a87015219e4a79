#include "client/cli/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/clock.h"
#include "client/cli/daemon.h"
#include "client/cli/lease.h"
#include "client/cli/lookup.h"
#include "client/cli/process_tree.h"
#include "client/cli/report.h"
#include "client/cli/signals.h"
#include "client/cli/title.h"
#include "protocol/units.h"

enum {
    GROUP_CHECK_MS = 50,        /* shortest interval between two checks of the command's group */
    GROUP_CHECK_SHARE = 20,     /* the checks take at most 1/20 of one processor */
    GROUP_CHECK_IDLE_MS = 1000, /* additional interval while no child ends */
    PARENT_CHECK_MS = 20,       /* interval between attempts to continue the parent */
};

struct supervisor {
    const struct supervisor_plan *plan;
    struct lease lease;
    struct lookup lookup;
    pid_t command;
    int go;       /* pipe to the command, which begins after one byte; -1: closed */
    int children; /* signalfd of SIGCHLD */
    int timer;
    bool parent_gone;
    bool command_ended;
    int64_t group_check_ns;     /* when to check whether the command's group has ended */
    int64_t group_check_min_ns; /* when to check it at the earliest, if a child ends */
    uint64_t extend_id;         /* the EXTEND under way; 0: none */
};

static void send_parent(const struct supervisor *supervisor, const struct ipc_message *message)
{
    /* Ignore errors: read_parent() detects a dead parent. */
    (void)!send(supervisor->plan->ipc_fd, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* True if the parent is stopped (`halted`) or about to stop, but the command is not stopped. A
 * SIGCONT that arrives before the parent stops has no effect, so the supervisor repeats the signal
 * until `halted` is false. */
static bool parent_must_continue(const struct supervisor *supervisor)
{
    const struct shared_deadline *shared = supervisor->plan->shared;
    return atomic_load(&shared->halted) && !atomic_load(&shared->stopped) &&
           getppid() == supervisor->plan->parent;
}

static void continue_parent(const struct supervisor *supervisor)
{
    if (parent_must_continue(supervisor))
        kill(supervisor->plan->parent, SIGCONT);
}

/* --- the command --- */

static void export_number(const char *name, int64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, number);
    setenv(name, text, 1);
}

/* Sets the environment so that redlock commands inside COMMAND use the same daemon and user, from
 * any directory. */
static void export_daemon(const struct options *options)
{
    const char *path = options->secret_file;
    char *folder = NULL, *absolute = NULL;
    setenv("REDLOCK_URL", options->url, 1);
    if (path == NULL)
        return;
    if (path[0] != '/' && (folder = get_current_dir_name()) != NULL &&
        asprintf(&absolute, "%s/%s", folder, path) >= 0)
        path = absolute;
    setenv("REDLOCK_SECRET_FILE", path, 1);
}

/* Appends the name to the locks that enclosing `redlock run` commands hold. */
static void export_held(const char *name)
{
    const char *around = getenv("REDLOCK_HELD");
    char *all;
    if (around == NULL || around[0] == '\0')
        setenv("REDLOCK_HELD", name, 1);
    else if (asprintf(&all, "%s %s", around, name) >= 0)
        setenv("REDLOCK_HELD", all, 1);
}

static void export_lock(const struct redlock_lock *lock)
{
    export_held(lock->resource);
    setenv("REDLOCK_RESOURCE", lock->resource, 1);
    setenv("REDLOCK_TOKEN", lock->token, 1);
    export_number("REDLOCK_DEADLINE_MS", lock->deadline_ns / NS_PER_MS);
    if (lock->fence != 0)
        export_number("REDLOCK_FENCE", lock->fence);
    else
        unsetenv("REDLOCK_FENCE");
}

/* Runs in the child: executes COMMAND. */
static _Noreturn void become_command(const struct supervisor_plan *plan, pid_t supervisor, int go)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Do not run COMMAND if the supervisor died before prctl(2), or if it closed the pipe because
     * the parent died before lending the terminal to the command. */
    if (getppid() != supervisor || read(go, &byte, 1) != 1)
        _exit(EXIT_FAILED);
    export_daemon(plan->options);
    export_lock(plan->lock);
    sigaction(SIGCHLD, &plan->on_child, NULL);
    sigprocmask(SIG_SETMASK, plan->mask, NULL);
    execvp(plan->options->argv[0], plan->options->argv);
    int error = errno;
    report_message("cannot run %s: %s", plan->options->argv[0], strerror(error));
    _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

static bool start_command(struct supervisor *supervisor)
{
    int go[2];
    pid_t self = getpid();
    if (pipe2(go, O_CLOEXEC) != 0)
        return false;
    supervisor->command = fork();
    if (supervisor->command == 0) {
        close(go[1]);
        become_command(supervisor->plan, self, go[0]);
    }
    close(go[0]);
    supervisor->go = go[1];
    if (supervisor->command < 0)
        return false;
    setpgid(supervisor->command, supervisor->command);
    send_parent(supervisor,
                &(struct ipc_message){.kind = IPC_STARTED, .value = supervisor->command});
    return true;
}

/* --- exit --- */

/* How the command ended. WNOWAIT leaves the zombie, so that its PID is not reused. */
static struct ipc_message how_it_ended(const struct supervisor *supervisor)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    waitid(P_PID, (id_t)supervisor->command, &info, WEXITED | WNOWAIT);
    return (struct ipc_message){
        .kind = IPC_ENDED,
        .value = info.si_status,
        .by_signal = info.si_code != CLD_EXITED,
        .lost = lease_is_lost(&supervisor->lease),
    };
}

/* Prepares the handle for a request. If the request will have to connect, reads the secret again
 * and sets the next address to try. False: no address of the daemon is known yet. */
static bool prepare_connection(struct supervisor *supervisor)
{
    const struct supervisor_plan *plan = supervisor->plan;
    bool known = !supervisor->lookup.needed || supervisor->lookup.places.count > 0;
    if (known && redlock_is_connected(plan->redlock))
        return true;
    daemon_renew_secret(plan->options, plan->redlock);
    if (!supervisor->lookup.needed)
        return true;
    const char *url = lookup_next(&supervisor->lookup);
    return url != NULL && redlock_set_url(plan->redlock, url) == REDLOCK_OK;
}

/* Releases the lock. If no known address works, connects by host name. That lookup may block, which
 * does no harm after the command has ended. GONE: the lock had ended before. */
static enum redlock_status release(struct supervisor *supervisor, struct redlock_lock *lock)
{
    const struct supervisor_plan *plan = supervisor->plan;
    enum redlock_status status = REDLOCK_UNREACHABLE;
    bool repeated = false;
    if (prepare_connection(supervisor))
        status = redlock_release(plan->redlock, lock);
    /* A reload that changes the users ends the connection. Present the secret again. */
    if (status == REDLOCK_DENIED && !redlock_is_connected(plan->redlock) &&
        prepare_connection(supervisor)) {
        repeated = true;
        status = redlock_release(plan->redlock, lock);
    }
    if (status == REDLOCK_UNREACHABLE && supervisor->lookup.needed) {
        (void)redlock_set_url(plan->redlock, plan->options->url);
        status = redlock_release(plan->redlock, lock);
    }
    /* The UNLOCK that was DENIED may have been carried out before the reload. */
    return repeated && status == REDLOCK_GONE ? REDLOCK_OK : status;
}

/* Reports the end of the command to the parent, releases the lock and exits. The parent does not
 * wait longer than RELEASE_TIMEOUT_NS for the release. */
static _Noreturn void release_and_exit(struct supervisor *supervisor)
{
    const struct supervisor_plan *plan = supervisor->plan;
    const struct timespec moment = {.tv_nsec = PARENT_CHECK_MS * NS_PER_MS};
    struct ipc_message ended = how_it_ended(supervisor);
    struct ipc_message over = {.kind = IPC_OVER};
    struct redlock_lock lock = *plan->lock;
    atomic_store(&plan->shared->stopped, false);
    send_parent(supervisor, &ended);
    atomic_store(&plan->shared->kill_ns, KILL_NEVER);
    continue_parent(supervisor);
    redlock_set_timeout(plan->redlock, RELEASE_TIMEOUT_MS);
    redlock_set_connect_timeout(plan->redlock, RELEASE_TIMEOUT_MS);
    enum redlock_status status = release(supervisor, &lock);
    /* After the deadline, it may have ended later than the command. */
    bool gone = status == REDLOCK_GONE;
    over.lost = gone && clock_boottime_ns() < supervisor->lease.deadline_ns;
    if (over.lost && !ended.lost)
        snprintf(over.text, sizeof(over.text),
                 "was no longer held when the command ended: no quorum of masters has it");
    else if (status != REDLOCK_OK && !gone && !ended.lost)
        snprintf(over.text, sizeof(over.text), RELEASE_UNCONFIRMED ": %.160s",
                 redlock_error(plan->redlock));
    send_parent(supervisor, &over);
    for (; parent_must_continue(supervisor); nanosleep(&moment, NULL))
        continue_parent(supervisor);
    _exit(0);
}

static _Noreturn void kill_and_exit(struct supervisor *supervisor)
{
    process_tree_kill(supervisor->command);
    release_and_exit(supervisor);
}

/* If the command exited by itself, descendants outside of its group are taken for daemons and keep
 * running. If a signal ended the command, it may have left descendants that are no daemons, so all
 * are killed. After the lock is lost, no descendant is allowed to live. */
static _Noreturn void exit_after_group(struct supervisor *supervisor)
{
    struct ipc_message how = how_it_ended(supervisor);
    if (how.by_signal || how.lost)
        process_tree_kill(supervisor->command);
    release_and_exit(supervisor);
}

static void send_lost(const struct supervisor *supervisor, const char *why)
{
    struct ipc_message message = {.kind = IPC_LOST};
    snprintf(message.text, sizeof(message.text), "%s", why);
    send_parent(supervisor, &message);
}

static void lose(struct supervisor *supervisor, const char *why, int64_t now_ns)
{
    if (lease_is_lost(&supervisor->lease))
        return;
    send_lost(supervisor, why);
    lease_lose(&supervisor->lease, why, now_ns);
    kill(-supervisor->command, supervisor->plan->options->on_lost);
    kill(-supervisor->command, SIGCONT);
}

/* The masters no longer have the lock. Sends no signal: kill_if_due() kills at once. */
static void lose_gone(struct supervisor *supervisor, int64_t now_ns)
{
    static const char why[] = "it was released or broken, or it has expired";
    if (!lease_is_lost(&supervisor->lease))
        send_lost(supervisor, why);
    lease_on_gone(&supervisor->lease, why, now_ns);
}

/* --- the lock --- */

static void on_extend_answer(struct supervisor *supervisor, const struct redlock_event *event,
                             int64_t now_ns)
{
    supervisor->extend_id = 0;
    if (event->status == REDLOCK_OK) {
        lease_on_extended(&supervisor->lease, event->lock.deadline_ns);
        places_worked(&supervisor->lookup.places);
    } else if (event->status == REDLOCK_GONE) {
        lose_gone(supervisor, now_ns);
    } else {
        lease_on_failed(&supervisor->lease, redlock_error(supervisor->plan->redlock), now_ns);
    }
    /* The connection may be dead: send the next EXTEND over a new one. */
    if (event->status == REDLOCK_TIMEOUT)
        redlock_abandon(supervisor->plan->redlock);
}

/* Explains the reason of a LOST line. */
static const char *explain_loss(const char *reason)
{
    static const char *const reasons[][2] = {
        {"noquorum", "too few masters could vote"},
        {"late", "the masters answered too late"},
        {"limit", "it was held for as long as the daemon allows (max_hold)"},
        {"overdue", "the daemon was stopped or too busy"},
    };
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (strcmp(reason, reasons[i][0]) == 0)
            return reasons[i][1];
    return reason;
}

static void on_lost(struct supervisor *supervisor, const struct redlock_event *event,
                    int64_t now_ns)
{
    /* The daemon shuts down, but the lock is not lost yet: another daemon can extend it, and so can
     * this daemon after a restart. */
    if (strcmp(event->reason, "shutdown") == 0)
        return;
    if (strcmp(event->reason, "gone") == 0)
        lose_gone(supervisor, now_ns);
    else
        lose(supervisor, explain_loss(event->reason), now_ns);
}

static void read_events(struct supervisor *supervisor)
{
    struct redlock_event event;
    while (redlock_next(supervisor->plan->redlock, &event)) {
        int64_t now_ns = clock_boottime_ns();
        if (event.kind == REDLOCK_EVENT_ANSWER && event.id == supervisor->extend_id)
            on_extend_answer(supervisor, &event, now_ns);
        else if (event.kind == REDLOCK_EVENT_LOST)
            on_lost(supervisor, &event, now_ns);
        else if (event.kind == REDLOCK_EVENT_CLOSED)
            lease_on_closed(&supervisor->lease, now_ns);
    }
}

static void extend(struct supervisor *supervisor, int64_t now_ns)
{
    const struct supervisor_plan *plan = supervisor->plan;
    lease_on_extending(&supervisor->lease, now_ns);
    if (!prepare_connection(supervisor))
        lease_on_failed(&supervisor->lease, "the daemon's host name does not resolve", now_ns);
    else if (redlock_start_extend(plan->redlock, plan->lock, plan->lock->ttl_ms,
                                  &supervisor->extend_id) != REDLOCK_OK)
        lease_on_failed(&supervisor->lease, redlock_error(plan->redlock), now_ns);
}

/* --- the loop --- */

/* True if the command and all processes of its group have ended. The check lists all processes of
 * the machine, so it must not be frequent. The supervisor makes it after a child has ended, which
 * may have been the last process of the group. Without such an event, the checks are rare. */
static bool group_has_ended(struct supervisor *supervisor)
{
    int64_t now_ns = clock_boottime_ns();
    if (!supervisor->command_ended)
        return false;
    if (now_ns < supervisor->group_check_ns)
        return process_tree_is_empty();
    if (!process_tree_group_lives(supervisor->command))
        return true;
    int64_t ended_ns = clock_boottime_ns();
    int64_t pause_ns = (ended_ns - now_ns) * GROUP_CHECK_SHARE;
    pause_ns = max(pause_ns, GROUP_CHECK_MS * NS_PER_MS);
    supervisor->group_check_min_ns = ended_ns + pause_ns;
    supervisor->group_check_ns = supervisor->group_check_min_ns + GROUP_CHECK_IDLE_MS * NS_PER_MS;
    return false;
}

/* Reaps the children that have ended, except the command, whose PID must not be reused. Once the
 * command is a zombie, waitid(2) may report only that zombie, so process_tree_group_lives() reaps
 * the other children. */
static void reap_children(struct supervisor *supervisor)
{
    siginfo_t info;
    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        if (info.si_pid == supervisor->command)
            break;
        waitpid(info.si_pid, NULL, WNOHANG);
    }
    if (!supervisor->command_ended)
        atomic_store(&supervisor->plan->shared->stopped, false);
    supervisor->command_ended = true;
}

/* Tells the parent when the command has stopped. Once the command has ended, the rest of its group
 * counts, as far as its processes have become children of the supervisor. */
static void report_stops(const struct supervisor *supervisor)
{
    struct shared_deadline *shared = supervisor->plan->shared;
    idtype_t whose = supervisor->command_ended ? P_PGID : P_PID;
    siginfo_t info;
    for (;;) {
        info.si_pid = 0;
        if (waitid(whose, (id_t)supervisor->command, &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 ||
            info.si_pid == 0)
            return;
        /* A terminal stops all processes of the group. This may have stopped only one of them. */
        if (supervisor->command_ended && info.si_status == SIGSTOP)
            continue;
        atomic_store(&shared->stopped, info.si_code != CLD_CONTINUED);
        if (info.si_code != CLD_CONTINUED &&
            atomic_exchange(&shared->stop_signal, info.si_status) == 0)
            send_parent(supervisor, &(struct ipc_message){.kind = IPC_STOPPED});
    }
}

static void check_children(struct supervisor *supervisor)
{
    struct signalfd_siginfo signal;
    while (read(supervisor->children, &signal, sizeof(signal)) > 0)
        supervisor->group_check_ns =
            min(supervisor->group_check_ns, supervisor->group_check_min_ns);
    reap_children(supervisor);
    report_stops(supervisor);
}

static void read_parent(struct supervisor *supervisor)
{
    struct ipc_message message;
    ssize_t len = recv(supervisor->plan->ipc_fd, &message, sizeof(message), MSG_DONTWAIT);
    if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
        supervisor->parent_gone = true;
    if (len == (ssize_t)sizeof(message) && message.kind == IPC_GO && supervisor->go >= 0) {
        (void)!write(supervisor->go, "", 1);
        close(supervisor->go);
        supervisor->go = -1;
    }
}

static void wait_for_events(const struct supervisor *supervisor)
{
    struct redlock *redlock = supervisor->plan->redlock;
    struct pollfd fds[] = {
        {.fd = supervisor->plan->ipc_fd, .events = POLLIN},
        {.fd = supervisor->children, .events = POLLIN},
        {.fd = supervisor->timer, .events = POLLIN},
        {.fd = redlock_fd(redlock), .events = POLLIN},
        {.fd = supervisor->lookup.answer, .events = POLLIN},
    };
    int timeout_ms = parent_must_continue(supervisor) ? PARENT_CHECK_MS : -1;
    int64_t next_ns = lease_next_ns(&supervisor->lease);
    if (supervisor->command_ended && supervisor->group_check_ns < next_ns)
        next_ns = supervisor->group_check_ns;
    clock_set_timer(supervisor->timer, next_ns);
    poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
}

/* Kills the command if its time to be killed has come. Runs before any event is read: if the
 * supervisor was stopped past that time, the command must die first. */
static void kill_if_due(struct supervisor *supervisor)
{
    struct lease *lease = &supervisor->lease;
    int64_t now_ns = clock_boottime_ns();
    if (now_ns < lease_kill_ns(lease))
        return;
    lose(supervisor, lease->why[0] != '\0' ? lease->why : "redlock itself was stopped for too long",
         now_ns);
    kill_and_exit(supervisor);
}

/* Extends the lock or gives it up, at the times that lease.h computes. Runs after all events have
 * been read, since an answer can change these times. */
static void keep_lock(struct supervisor *supervisor)
{
    struct lease *lease = &supervisor->lease;
    int64_t now_ns = clock_boottime_ns();
    if (now_ns >= lease_give_up_ns(lease))
        lose(supervisor, lease->why[0] != '\0' ? lease->why : "the daemon does not answer", now_ns);
    if (now_ns >= lease_extend_ns(lease))
        extend(supervisor, now_ns);
}

/* Takes the connection from the parent, and gives the handle a numeric address, so that a reconnect
 * needs no name lookup. */
static void take_over_connection(struct supervisor *supervisor)
{
    const struct supervisor_plan *plan = supervisor->plan;
    redlock_take_over(plan->redlock);
    lookup_init(&supervisor->lookup, plan->options->url, redlock_socket(plan->redlock));
    const char *url = places_next(&supervisor->lookup.places);
    if (url != NULL)
        (void)redlock_set_url(plan->redlock, url);
    places_worked(&supervisor->lookup.places);
}

_Noreturn void supervisor_run(const struct supervisor_plan *plan)
{
    struct supervisor supervisor = {.plan = plan, .go = -1};
    const struct redlock_lock *lock = plan->lock;
    const sigset_t child = signal_only(SIGCHLD);
    /* Leave the parent's process group and change the process name, so that ^C, signals to the
     * parent's group and `killall redlock` do not reach the supervisor. As long as the parent or
     * the supervisor lives, the command cannot outlive the lock. */
    setpgid(0, 0);
    title_set("rl-supervisor", lock->resource);
    bool adopted = process_tree_adopt();
    take_over_connection(&supervisor);
    lease_init(&supervisor.lease, lock->ttl_ms * NS_PER_MS, plan->options->grace_ms * NS_PER_MS,
               lock->deadline_ns);
    /* A connection that is silent for this long is replaced. Connecting blocks the loop, so the
     * same time limit applies to it. */
    int64_t timeout_ms = lease_answer_timeout_ns(&supervisor.lease) / NS_PER_MS;
    redlock_set_timeout(plan->redlock, timeout_ms);
    redlock_set_connect_timeout(plan->redlock, timeout_ms);
    supervisor.children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    supervisor.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (!adopted || supervisor.children < 0 || supervisor.timer < 0 ||
        !start_command(&supervisor)) {
        report_message("cannot start a process: %s", strerror(errno));
        _exit(EXIT_FAILED);
    }
    for (;;) {
        kill_if_due(&supervisor);
        lookup_read(&supervisor.lookup);
        read_parent(&supervisor);
        check_children(&supervisor);
        continue_parent(&supervisor);
        read_events(&supervisor);
        keep_lock(&supervisor);
        if (supervisor.parent_gone)
            kill_and_exit(&supervisor);
        if (group_has_ended(&supervisor))
            exit_after_group(&supervisor);
        atomic_store(&plan->shared->kill_ns, lease_kill_ns(&supervisor.lease));
        wait_for_events(&supervisor);
    }
}
