#include "client/cli/keeper.h"

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
    GROUP_LOOK_MS = 50,        /* the shortest pause between two looks at the command's group */
    GROUP_LOOK_SHARE = 20,     /* a look takes at most one part of so many of a processor's time */
    GROUP_LOOK_IDLE_MS = 1000, /* the pause is so much longer while no child ends */
    FRONT_LOOK_MS = 20,        /* whether the front goes on again */
};

struct keeper {
    const struct keeper_plan *plan;
    struct lease lease;
    struct lookup lookup;
    pid_t command;
    int go;       /* the command waits for a byte from here; -1 once it has it */
    int children; /* a signalfd of SIGCHLD */
    int timer;
    bool front_gone;
    bool command_ended;
    int64_t look_ns;         /* when to look at its group */
    int64_t look_soonest_ns; /* ... where a child has ended meanwhile */
    uint64_t asked;          /* the extension under way */
};

static void tell(const struct keeper *keeper, const struct ipc_message *message)
{
    /* A front that is gone shows when it is read from. */
    (void)!send(keeper->plan->ipc_fd, message, sizeof(*message), MSG_NOSIGNAL);
}

/* The front has stopped along with the command, and has to go on along with it. It may be about to
 * stop and stop after it was continued, so this is done until it has said that it goes on. */
static bool front_is_behind(const struct keeper *keeper)
{
    const struct shared_deadline *shared = keeper->plan->shared;
    return atomic_load(&shared->halted) && !atomic_load(&shared->stopped) &&
           getppid() == keeper->plan->front;
}

static void continue_front(const struct keeper *keeper)
{
    if (front_is_behind(keeper))
        kill(keeper->plan->front, SIGCONT);
}

/* --- the command --- */

static void export_number(const char *name, int64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, number);
    setenv(name, text, 1);
}

/* Commands within find the same daemon, and are the same user there: from whatever folder. */
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

/* The name, behind those of the locks that are held around this one. */
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

/* In the command's process: becomes the command. */
static _Noreturn void become_command(const struct keeper_plan *plan, pid_t keeper, int go)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The keeper may have ended before that; or the front before it had lent its terminal. */
    if (getppid() != keeper || read(go, &byte, 1) != 1)
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

static bool start_command(struct keeper *keeper)
{
    int go[2];
    pid_t self = getpid();
    if (pipe2(go, O_CLOEXEC) != 0)
        return false;
    keeper->command = fork();
    if (keeper->command == 0) {
        close(go[1]);
        become_command(keeper->plan, self, go[0]);
    }
    close(go[0]);
    keeper->go = go[1];
    if (keeper->command < 0)
        return false;
    setpgid(keeper->command, keeper->command);
    tell(keeper, &(struct ipc_message){.kind = IPC_STARTED, .value = keeper->command});
    return true;
}

/* --- the end --- */

/* How the command ended; it is not waited for, so that its number stays its own. */
static struct ipc_message how_it_ended(const struct keeper *keeper)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    waitid(P_PID, (id_t)keeper->command, &info, WEXITED | WNOWAIT);
    return (struct ipc_message){
        .kind = IPC_ENDED,
        .value = info.si_status,
        .by_signal = info.si_code != CLD_EXITED,
        .lost = lease_is_lost(&keeper->lease),
    };
}

/* What the next request needs where there is no connection. False: an address, which is not known
 * yet. */
static bool prepare_connection(struct keeper *keeper)
{
    const struct keeper_plan *plan = keeper->plan;
    bool known = !keeper->lookup.needed || keeper->lookup.places.count > 0;
    if (known && redlock_is_connected(plan->redlock))
        return true;
    daemon_renew_secret(plan->options, plan->redlock);
    if (!keeper->lookup.needed)
        return true;
    const char *url = lookup_next(&keeper->lookup);
    return url != NULL && redlock_set_url(plan->redlock, url) == REDLOCK_OK;
}

/* Nothing runs any more, so a look-up of the daemon's name may take its time. */
static enum redlock_status release(struct keeper *keeper, struct redlock_lock *lock)
{
    const struct keeper_plan *plan = keeper->plan;
    enum redlock_status status = REDLOCK_UNREACHABLE;
    if (prepare_connection(keeper))
        status = redlock_release(plan->redlock, lock);
    if (status != REDLOCK_UNREACHABLE || !keeper->lookup.needed)
        return status;
    (void)redlock_set_url(plan->redlock, plan->options->url);
    return redlock_release(plan->redlock, lock);
}

/* Everything it started is gone, or was left in peace: say so, and give the lock back. The front
 * does not depend on how long that takes. */
static _Noreturn void end(struct keeper *keeper)
{
    const struct keeper_plan *plan = keeper->plan;
    const struct timespec moment = {.tv_nsec = FRONT_LOOK_MS * NS_PER_MS};
    struct ipc_message ended = how_it_ended(keeper);
    struct ipc_message over = {.kind = IPC_OVER};
    struct redlock_lock lock = *plan->lock;
    atomic_store(&plan->shared->stopped, false);
    tell(keeper, &ended);
    atomic_store(&plan->shared->kill_ns, KILL_NEVER);
    continue_front(keeper);
    redlock_set_timeout(plan->redlock, RELEASE_TIMEOUT_MS);
    enum redlock_status status = release(keeper, &lock);
    if (status == REDLOCK_GONE && !ended.lost)
        snprintf(over.text, sizeof(over.text),
                 "was not held any more when the command ended: no majority of the masters has it");
    else if (status != REDLOCK_OK && !ended.lost)
        snprintf(over.text, sizeof(over.text), "could not be released, and ends by itself: %.160s",
                 redlock_error(plan->redlock));
    tell(keeper, &over);
    for (; front_is_behind(keeper); nanosleep(&moment, NULL))
        continue_front(keeper);
    _exit(0);
}

static _Noreturn void kill_and_end(struct keeper *keeper)
{
    process_tree_kill(keeper->command);
    end(keeper);
}

/* What has left the group of a command that ended by itself was meant to: a daemon. Of one that was
 * killed nobody knows, so it goes the same way. After a loss nothing may live. */
static _Noreturn void leave_or_kill_and_end(struct keeper *keeper)
{
    struct ipc_message how = how_it_ended(keeper);
    if (how.by_signal || how.lost)
        process_tree_kill(keeper->command);
    end(keeper);
}

static void tell_lost(const struct keeper *keeper, const char *why)
{
    struct ipc_message message = {.kind = IPC_LOST};
    snprintf(message.text, sizeof(message.text), "%s", why);
    tell(keeper, &message);
}

static void lose(struct keeper *keeper, const char *why, int64_t now_ns)
{
    if (lease_is_lost(&keeper->lease))
        return;
    tell_lost(keeper, why);
    lease_lose(&keeper->lease, why, now_ns);
    kill(-keeper->command, keeper->plan->options->on_lost);
    kill(-keeper->command, SIGCONT);
}

/* The masters do not have it any more: kill_if_due() follows, without a signal before it. */
static void lose_gone(struct keeper *keeper, const char *why, int64_t now_ns)
{
    if (!lease_is_lost(&keeper->lease))
        tell_lost(keeper, why);
    lease_on_gone(&keeper->lease, why, now_ns);
}

/* --- the lock --- */

static void on_extend_answer(struct keeper *keeper, const struct redlock_event *event,
                             int64_t now_ns)
{
    keeper->asked = 0;
    if (event->status == REDLOCK_OK) {
        lease_on_extended(&keeper->lease, event->lock.deadline_ns);
        places_good(&keeper->lookup.places);
    } else if (event->status == REDLOCK_GONE) {
        lose_gone(keeper, "it is not held any more: it was released or has expired", now_ns);
    } else {
        lease_on_failed(&keeper->lease, redlock_error(keeper->plan->redlock), now_ns);
    }
    /* The way may be at fault: the next is asked over another. */
    if (event->status == REDLOCK_TIMEOUT)
        redlock_abandon(keeper->plan->redlock);
}

static void on_lost(struct keeper *keeper, const struct redlock_event *event, int64_t now_ns)
{
    char why[96];
    /* The next daemon can extend it, or this one when it is back. */
    if (strcmp(event->reason, "shutdown") == 0)
        return;
    snprintf(why, sizeof(why), "the daemon could not keep it: %s", event->reason);
    if (strcmp(event->reason, "gone") == 0)
        lose_gone(keeper, why, now_ns);
    else
        lose(keeper, why, now_ns);
}

static void read_events(struct keeper *keeper)
{
    struct redlock_event event;
    while (redlock_next(keeper->plan->redlock, &event)) {
        int64_t now_ns = clock_boottime_ns();
        if (event.kind == REDLOCK_EVENT_ANSWER && event.id == keeper->asked)
            on_extend_answer(keeper, &event, now_ns);
        else if (event.kind == REDLOCK_EVENT_LOST)
            on_lost(keeper, &event, now_ns);
        else if (event.kind == REDLOCK_EVENT_CLOSED)
            lease_on_closed(&keeper->lease, now_ns);
    }
}

static void extend(struct keeper *keeper, int64_t now_ns)
{
    const struct keeper_plan *plan = keeper->plan;
    lease_on_asked(&keeper->lease, now_ns);
    if (!prepare_connection(keeper))
        lease_on_failed(&keeper->lease, "the name of the daemon does not resolve", now_ns);
    else if (redlock_start_extend(plan->redlock, plan->lock, plan->lock->ttl_ms, &keeper->asked) !=
             REDLOCK_OK)
        lease_on_failed(&keeper->lease, redlock_error(plan->redlock), now_ns);
}

/* --- the loop --- */

/* To look at the group takes a look at all processes of the machine: so when a child has ended,
 * which may have been the last of it, and otherwise seldom. */
static bool group_has_ended(struct keeper *keeper)
{
    int64_t now_ns = clock_boottime_ns();
    if (!keeper->command_ended)
        return false;
    if (now_ns < keeper->look_ns)
        return process_tree_is_empty();
    if (!process_tree_group_lives(keeper->command))
        return true;
    int64_t ended_ns = clock_boottime_ns();
    int64_t least_ns = (ended_ns - now_ns) * GROUP_LOOK_SHARE;
    if (least_ns < GROUP_LOOK_MS * NS_PER_MS)
        least_ns = GROUP_LOOK_MS * NS_PER_MS;
    keeper->look_soonest_ns = ended_ns + least_ns;
    keeper->look_ns = keeper->look_soonest_ns + GROUP_LOOK_IDLE_MS * NS_PER_MS;
    return false;
}

/* What ended in between; the command itself stays as it is, and once it has ended, who ends then is
 * left to process_tree_group_lives(). */
static void look_at_children(struct keeper *keeper)
{
    struct signalfd_siginfo signal;
    siginfo_t info;
    while (read(keeper->children, &signal, sizeof(signal)) > 0)
        if (keeper->look_ns > keeper->look_soonest_ns)
            keeper->look_ns = keeper->look_soonest_ns;
    for (;;) {
        info.si_pid = 0;
        if (waitid(P_PID, (id_t)keeper->command, &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 ||
            info.si_pid == 0)
            break;
        atomic_store(&keeper->plan->shared->stopped, info.si_code != CLD_CONTINUED);
        if (info.si_code != CLD_CONTINUED)
            tell(keeper, &(struct ipc_message){.kind = IPC_STOPPED, .value = info.si_status});
    }
    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        if (info.si_pid == keeper->command) {
            keeper->command_ended = true;
            atomic_store(&keeper->plan->shared->stopped, false);
            return;
        }
        waitpid(info.si_pid, NULL, WNOHANG);
    }
}

static void read_front(struct keeper *keeper)
{
    struct ipc_message message;
    ssize_t len = recv(keeper->plan->ipc_fd, &message, sizeof(message), MSG_DONTWAIT);
    if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
        keeper->front_gone = true;
    if (len == (ssize_t)sizeof(message) && message.kind == IPC_GO && keeper->go >= 0) {
        (void)!write(keeper->go, "", 1);
        close(keeper->go);
        keeper->go = -1;
    }
}

static void wait_for_something(const struct keeper *keeper)
{
    struct redlock *redlock = keeper->plan->redlock;
    struct pollfd fds[] = {
        {.fd = keeper->plan->ipc_fd, .events = POLLIN},
        {.fd = keeper->children, .events = POLLIN},
        {.fd = keeper->timer, .events = POLLIN},
        {.fd = redlock_fd(redlock), .events = POLLIN},
    };
    int timeout_ms = front_is_behind(keeper) ? FRONT_LOOK_MS : -1;
    int64_t next_ns = lease_next_ns(&keeper->lease);
    if (keeper->command_ended && keeper->look_ns < next_ns)
        next_ns = keeper->look_ns;
    clock_set_timer(keeper->timer, next_ns);
    poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
}

/* Time is looked at before anything is read: whoever was stopped past the deadline kills first. */
static void kill_if_due(struct keeper *keeper)
{
    struct lease *lease = &keeper->lease;
    int64_t now_ns = clock_boottime_ns();
    if (now_ns < lease_kill_ns(lease))
        return;
    lose(keeper, lease->why[0] != '\0' ? lease->why : "redlock itself was stopped for too long",
         now_ns);
    kill_and_end(keeper);
}

/* What is due, after all that has been heard. */
static void keep_lock(struct keeper *keeper)
{
    struct lease *lease = &keeper->lease;
    int64_t now_ns = clock_boottime_ns();
    if (now_ns >= lease_give_up_ns(lease))
        lose(keeper, lease->why[0] != '\0' ? lease->why : "the daemon does not answer", now_ns);
    if (now_ns >= lease_extend_ns(lease))
        extend(keeper, now_ns);
}

/* A request that finds the connection gone makes another one: from now on without a name. */
static void take_over_connection(struct keeper *keeper)
{
    const struct keeper_plan *plan = keeper->plan;
    redlock_take_over(plan->redlock);
    lookup_init(&keeper->lookup, plan->options->url, redlock_socket(plan->redlock));
    const char *url = places_next(&keeper->lookup.places);
    if (url != NULL)
        (void)redlock_set_url(plan->redlock, url);
    places_good(&keeper->lookup.places);
}

_Noreturn void keeper_run(const struct keeper_plan *plan)
{
    struct keeper keeper = {.plan = plan, .go = -1};
    const struct redlock_lock *lock = plan->lock;
    const sigset_t child = signal_only(SIGCHLD);
    /* Out of reach for what is typed, or sent to the front's group, or to all processes of the name
     * redlock: as long as one of the two lives, nothing outlives the lock. */
    setpgid(0, 0);
    title_set("rl-supervisor", lock->resource);
    bool adopted = process_tree_adopt();
    take_over_connection(&keeper);
    lease_init(&keeper.lease, lock->ttl_ms * NS_PER_MS, plan->options->grace_ms * NS_PER_MS,
               lock->deadline_ns);
    /* A connection that is silent for longer is given up for another one, and everything else has
     * to wait for that. */
    int64_t patience_ms = lease_patience_ns(&keeper.lease) / NS_PER_MS;
    redlock_set_timeout(plan->redlock, patience_ms);
    redlock_set_connect_timeout(plan->redlock, patience_ms);
    keeper.children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    keeper.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (!adopted || keeper.children < 0 || keeper.timer < 0 || !start_command(&keeper)) {
        report_message("cannot start a process: %s", strerror(errno));
        _exit(EXIT_FAILED);
    }
    for (;;) {
        kill_if_due(&keeper);
        lookup_read(&keeper.lookup);
        read_front(&keeper);
        look_at_children(&keeper);
        continue_front(&keeper);
        read_events(&keeper);
        keep_lock(&keeper);
        if (keeper.front_gone)
            kill_and_end(&keeper);
        if (group_has_ended(&keeper))
            leave_or_kill_and_end(&keeper);
        atomic_store(&plan->shared->kill_ns, lease_kill_ns(&keeper.lease));
        wait_for_something(&keeper);
    }
}
