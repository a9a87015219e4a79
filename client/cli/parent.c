/*
 * `redlock run`, the parent: the process that the user has started. It acquires the lock and starts
 * the supervisor (supervisor.h), which runs the command. Then it lends its terminal to the command,
 * forwards signals, monitors the supervisor and returns the exit code.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/clock.h"
#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/lease.h"
#include "client/cli/nested.h"
#include "client/cli/process_tree.h"
#include "client/cli/report.h"
#include "client/cli/signals.h"
#include "client/cli/supervisor.h"
#include "client/cli/terminal.h"
#include "client/cli/wait.h"
#include "protocol/units.h"

static const int forwarded[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

/* Time for the supervisor to connect, to get the answer to UNLOCK, and some reserve. */
static const int64_t RELEASE_TIMEOUT_NS = (int64_t)3 * RELEASE_TIMEOUT_MS * NS_PER_MS;

/* Whether SIGINT has to end this process, too. Some shells end a script at ^C only if the program
 * that they wait for has been ended by SIGINT as well. */
enum interrupt {
    NOT_INTERRUPTED,
    INTERRUPTED_ALONE, /* by ^C that the script has got as well */
    /* The command had the terminal and was the only one to get ^C. The script must get it, too. */
    INTERRUPTED_WITH_SCRIPT,
};

struct parent {
    struct supervisor_plan plan;
    int64_t timeout_ns; /* this long after the shared deadline, the supervisor counts as stuck */
    pid_t supervisor;
    int ipc_fd;               /* socket to the supervisor */
    pid_t command;            /* 0: not started yet */
    bool asynchronous;        /* started by a script that goes on using the terminal */
    bool hung_up;             /* the command got SIGHUP because it cannot get the terminal */
    int64_t interrupted_ns;   /* when the parent last forwarded SIGINT; 0: never */
    bool interrupt_typed;     /* it was ^C, not sent by a process */
    bool ended;               /* the command has ended */
    struct ipc_message how;   /* if it has ended: the exit code or signal */
    enum interrupt interrupt; /* if it has ended */
    int64_t over_ns;          /* if it has ended: when the lock must be released */
    int signals;              /* signalfd of the forwarded signals */
    int timer;
    struct foreground terminal;
};

/* --- start --- */

static int failed(const char *what)
{
    report_message("%s: %s", what, strerror(errno));
    return EXIT_FAILED;
}

/* Creates the shared deadline. It starts with the time to kill that follows from the grant, so that
 * the parent can detect a supervisor that never gets to run. */
static bool share_deadline(struct parent *parent)
{
    struct lease lease;
    void *memory = mmap(NULL, sizeof(struct shared_deadline), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    lease_init(&lease, parent->plan.lock->ttl_ms * NS_PER_MS,
               parent->plan.options->grace_ms * NS_PER_MS, parent->plan.lock->deadline_ns);
    parent->plan.shared = memory;
    parent->timeout_ns = lease_margin_ns(&lease) / 2;
    atomic_init(&parent->plan.shared->kill_ns, lease_kill_ns(&lease));
    return true;
}

/* Blocks all signals while the supervisor starts. Later unblock_signals() leaves only these
 * blocked: the signals that the parent forwards, SIGTTOU, SIGPIPE, and those that were blocked at
 * first. */
static void block_signals(struct parent *parent)
{
    sigset_t all;
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    /* redlock may have been started with SIGCHLD ignored. Then the kernel would reap children
     * itself, and waitpid(2) would find none. */
    sigaction(SIGCHLD, &by_default, &parent->plan.on_child);
}

static sigset_t forwarded_set(const struct parent *parent)
{
    sigset_t ours;
    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        sigaddset(&ours, forwarded[i]);
    /* With --also, the enclosing run sends this signal when its lock is lost. */
    sigaddset(&ours, parent->plan.options->on_lost);
    return ours;
}

/* Opens all descriptors before anything is started, so that no descriptor can be missing later. */
static bool open_descriptors(struct parent *parent)
{
    const sigset_t ours = forwarded_set(parent);
    parent->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    parent->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return parent->signals >= 0 && parent->timer >= 0 && process_tree_prepare();
}

static void unblock_signals(const struct parent *parent)
{
    sigset_t ours = forwarded_set(parent);
    /* Messages must neither stop the parent (SIGTTOU, with `stty tostop` in the background) nor end
     * it (SIGPIPE, if standard error has no reader). */
    sigaddset(&ours, SIGTTOU);
    sigaddset(&ours, SIGPIPE);
    sigorset(&ours, &ours, parent->plan.mask);
    sigprocmask(SIG_SETMASK, &ours, NULL);
}

static bool start_supervisor(struct parent *parent)
{
    int ipc_fd[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ipc_fd) != 0)
        return false;
    fflush(NULL);
    parent->ipc_fd = ipc_fd[0];
    parent->plan.ipc_fd = ipc_fd[1];
    parent->plan.parent = getpid();
    parent->supervisor = fork();
    if (parent->supervisor == 0) {
        close(ipc_fd[0]);
        supervisor_run(&parent->plan);
    }
    close(ipc_fd[1]);
    return parent->supervisor > 0;
}

/* --- terminal and signals --- */

/* Whether a script has started this process by "redlock run ... &". A shell without job control
 * connects the input of such a process to /dev/null and leaves it in the group of the script. That
 * INT and QUIT are ignored is no sign: in "{ ...; } &" and "function &", bash does not ignore them.
 */
static bool is_asynchronous(void)
{
    struct stat input, null;
    return getpgrp() != getpid() && fstat(STDIN_FILENO, &input) == 0 &&
           stat("/dev/null", &null) == 0 && S_ISCHR(input.st_mode) && input.st_rdev == null.st_rdev;
}

/* An asynchronous command gets the terminal only if the kernel stops it because it uses it: see
 * stop_like_command(). */
static void lend_terminal(struct parent *parent)
{
    if (!parent->asynchronous)
        foreground_lend(&parent->terminal, parent->command);
}

/* Stops this process with the signal. Returns after SIGCONT. */
static void stop(struct parent *parent, int signal)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    /* For ^Z, and when a background process uses the terminal, the kernel stops a whole process
     * group. Do the same, because the shell expects it, and because a script that runs redlock is
     * in this group. */
    bool all =
        signal == SIGTTIN || signal == SIGTTOU || (parent->terminal.lent && signal == SIGTSTP);
    struct sigaction before = by_default; /* sigaction(2) fails for SIGSTOP and leaves this */
    const sigset_t only = signal_only(signal);
    foreground_take_back(&parent->terminal, false);
    sigaction(signal, &by_default, &before);
    kill(all ? 0 : getpid(), signal);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
    sigaction(signal, &before, NULL);
}

/* Continues the command. A stop that is reported later, but was before this, has been undone. */
static void continue_command(const struct parent *parent)
{
    atomic_store(&parent->plan.shared->stop_signal, 0);
    kill(-parent->command, SIGCONT);
}

/*
 * Stops the parent with the signal that stopped the command, so that the shell sees the same as
 * without redlock. Something may have continued the command already, or may continue it while the
 * parent stops. So the parent sets `halted` before it reads `stopped`: then the supervisor sees
 * that it must continue the parent.
 */
static void stop_like_command(struct parent *parent, int signal)
{
    if (signal == 0)
        return; /* undone, see continue_command() */
    bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    const sigset_t only = signal_only(SIGCONT);
    /* This process group is the foreground, but the command was not told: it is asynchronous, or
     * the shell's "fg" found the job running and sent no SIGCONT. */
    if (wants_terminal && foreground_lend(&parent->terminal, parent->command)) {
        continue_command(parent);
        return;
    }
    atomic_store(&parent->plan.shared->halted, true);
    bool stopped = atomic_load(&parent->plan.shared->stopped);
    if (stopped)
        stop(parent, signal);
    atomic_store(&parent->plan.shared->halted, false);
    if (!stopped)
        return;
    /* Consume this SIGCONT instead of forwarding it: the command gets one below. A second SIGCONT
     * would undo a stop that came in between. */
    bool continued = sigtimedwait(&only, NULL, &(struct timespec){0}) == SIGCONT;
    if (wants_terminal)
        foreground_lend(&parent->terminal, parent->command);
    else
        lend_terminal(parent);
    /* If the parent did not stop, its process group is orphaned: no shell can bring the group to
     * the foreground, and the command would be stopped again and again. Send SIGHUP to the command,
     * as the kernel does to orphaned groups. If it goes on in spite of that, kill it. */
    if (wants_terminal && !parent->terminal.lent && !continued) {
        kill(-parent->command, parent->hung_up ? SIGKILL : SIGHUP);
        parent->hung_up = true;
    }
    continue_command(parent);
}

static void note_interrupt(struct parent *parent, const struct signalfd_siginfo *info)
{
    parent->interrupted_ns = clock_boottime_ns();
    parent->interrupt_typed = info->ssi_code == SI_KERNEL;
    if (parent->ended && parent->interrupt_typed && parent->interrupt == NOT_INTERRUPTED)
        parent->interrupt = INTERRUPTED_ALONE;
}

static void forward_signals(struct parent *parent)
{
    struct signalfd_siginfo info;
    while (read(parent->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        /* The shell's "fg" has made this process group the foreground. */
        if (info.ssi_signo == SIGCONT && !parent->ended)
            lend_terminal(parent);
        /* The supervisor sends SIGCONT when the command has been continued already. */
        if (info.ssi_signo == SIGCONT && info.ssi_pid == (uint32_t)parent->supervisor)
            continue;
        if (info.ssi_signo == SIGINT)
            note_interrupt(parent, &info);
        kill(-parent->command, (int)info.ssi_signo);
    }
}

/* --- exit --- */

/* An interrupt that the parent has just forwarded is likely to be the one that has ended the
 * command. */
static enum interrupt how_interrupted(const struct parent *parent)
{
    enum { FORWARDED_S = 5 };
    if (!parent->terminal.lent || !parent->how.by_signal || parent->how.value != SIGINT)
        return NOT_INTERRUPTED;
    bool just_sent = parent->interrupted_ns > 0 &&
                     clock_boottime_ns() < parent->interrupted_ns + FORWARDED_S * NS_PER_S;
    if (!just_sent)
        return INTERRUPTED_WITH_SCRIPT;
    return parent->interrupt_typed ? INTERRUPTED_ALONE : NOT_INTERRUPTED;
}

/* Whether redlock was started with SIGINT ignored or blocked. */
static bool disregards_interrupt(const struct parent *parent)
{
    struct sigaction action;
    return sigismember(parent->plan.mask, SIGINT) ||
           (sigaction(SIGINT, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
}

static void end_by_interrupt(const struct parent *parent)
{
    const sigset_t only = signal_only(SIGINT);
    bool alone = parent->interrupt == INTERRUPTED_ALONE;
    if (alone && disregards_interrupt(parent))
        return;
    signal(SIGINT, SIG_DFL);
    kill(alone ? getpid() : 0, SIGINT);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
}

/* gone: only the release has shown that the lock was lost. */
static int finish(struct parent *parent, const char *text, bool gone)
{
    char name[REPORT_NAME];
    const struct ipc_message *how = &parent->how;
    /* The supervisor has no work left. SIGKILL ends it even if it is stopped. */
    kill(parent->supervisor, SIGKILL);
    waitpid(parent->supervisor, NULL, 0);
    /* The parent has now inherited the command as a zombie. Reap it here, because process 1 of a
     * container may never reap zombies. */
    waitpid(parent->command, NULL, WNOHANG);
    if (text[0] != '\0')
        report_message("%s: %s", report_name(parent->plan.lock->resource, name), text);
    if (how->lost)
        return EXIT_LOST;
    if (parent->interrupt != NOT_INTERRUPTED)
        end_by_interrupt(parent);
    if (gone)
        return EXIT_LOST;
    return how->by_signal ? EXIT_SIGNAL + how->value : how->value;
}

static int finish_without_release(struct parent *parent)
{
    return finish(parent, parent->how.lost ? "" : RELEASE_UNCONFIRMED, false);
}

/* The supervisor is dead or stuck: kills the command and all its descendants. */
static void kill_command(struct parent *parent)
{
    pid_t leader = parent->command > 0 ? parent->command : parent->supervisor;
    process_tree_kill(leader);
    waitpid(leader, NULL, 0);
    foreground_take_back(&parent->terminal, true);
}

static int on_supervisor_gone(struct parent *parent)
{
    if (parent->command > 0) {
        kill_command(parent);
        report_message("the supervisor process was killed, so the command was killed too");
    } else {
        /* The command has not begun: it waits for the supervisor, and exits without one. */
        waitpid(parent->supervisor, NULL, 0);
    }
    return EXIT_FAILED;
}

static int on_supervisor_stuck(struct parent *parent)
{
    char name[REPORT_NAME];
    kill_command(parent);
    report_message("%s is lost: redlock itself was stopped for too long, or could not end the "
                   "command in time; the command has ended now",
                   report_name(parent->plan.lock->resource, name));
    return EXIT_LOST;
}

/* --- the loop --- */

enum { RUNNING = -1 };

/* Handles one message of the supervisor. Returns RUNNING or the exit code. */
static int read_message(struct parent *parent)
{
    struct ipc_message message;
    char name[REPORT_NAME];
    ssize_t len = recv(parent->ipc_fd, &message, sizeof(message), MSG_DONTWAIT);
    /* ECONNRESET: the supervisor has ended without reading IPC_GO. Its messages come after this. */
    if (len < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
        return RUNNING;
    if (len != (ssize_t)sizeof(message))
        return parent->ended ? finish_without_release(parent) : on_supervisor_gone(parent);
    switch (message.kind) {
    case IPC_STARTED:
        parent->command = message.value;
        lend_terminal(parent);
        message = (struct ipc_message){.kind = IPC_GO};
        (void)!send(parent->ipc_fd, &message, sizeof(message), MSG_NOSIGNAL);
        return RUNNING;
    case IPC_STOPPED:
        stop_like_command(parent, atomic_exchange(&parent->plan.shared->stop_signal, 0));
        return RUNNING;
    case IPC_LOST:
        report_message("%s is lost: %s", report_name(parent->plan.lock->resource, name),
                       message.text);
        return RUNNING;
    case IPC_ENDED:
        parent->ended = true;
        parent->how = message;
        parent->interrupt = how_interrupted(parent);
        /* During the release, ^C must reach this process. */
        foreground_take_back(&parent->terminal, message.by_signal);
        parent->over_ns = clock_boottime_ns() + RELEASE_TIMEOUT_NS;
        return RUNNING;
    case IPC_OVER:
        return finish(parent, message.text, message.lost);
    case IPC_GO:
        break;
    }
    return RUNNING;
}

static int64_t stuck_at_ns(const struct parent *parent)
{
    return parent->ended ? parent->over_ns
                         : atomic_load(&parent->plan.shared->kill_ns) + parent->timeout_ns;
}

static int run_loop(struct parent *parent)
{
    for (;;) {
        int64_t stuck_ns = stuck_at_ns(parent);
        struct pollfd fds[] = {
            {.fd = parent->ipc_fd, .events = POLLIN},
            {.fd = parent->timer, .events = POLLIN},
            /* Signals stay pending until there is a command to forward them to. */
            {.fd = parent->command > 0 ? parent->signals : -1, .events = POLLIN},
        };
        clock_set_timer(parent->timer, stuck_ns);
        poll(fds, sizeof(fds) / sizeof(fds[0]), -1);
        /* Check the time first, as the supervisor does. Read the shared deadline again: the
         * supervisor may have moved it while this process was stopped. */
        if (!parent->ended && clock_boottime_ns() >= stuck_at_ns(parent))
            return on_supervisor_stuck(parent);
        if (parent->command > 0)
            forward_signals(parent);
        int code = read_message(parent);
        if (code != RUNNING)
            return code;
        if (parent->ended && clock_boottime_ns() >= parent->over_ns)
            return finish_without_release(parent);
    }
}

/* Runs COMMAND under the lock, which is a HOLD of this handle's connection. Returns the exit code
 * when the command has ended and the lock is released. mask: the signals that are blocked for the
 * command. */
static int run(const struct options *options, struct redlock *redlock,
               const struct redlock_lock *lock, const sigset_t *mask)
{
    struct parent parent = {
        .plan = {.options = options, .redlock = redlock, .lock = lock, .mask = mask},
        .asynchronous = is_asynchronous(),
    };
    if (!open_descriptors(&parent) || !process_tree_adopt())
        return failed("cannot start a process");
    if (!share_deadline(&parent))
        return failed("no memory to share");
    foreground_open(&parent.terminal);
    block_signals(&parent);
    if (!start_supervisor(&parent))
        return failed("cannot start a process");
    unblock_signals(&parent);
    int code = run_loop(&parent);
    foreground_close(&parent.terminal);
    return code;
}

/* If this process was stopped while it waited, little of the validity may be left, so extends the
 * lock. False: the lock is gone. If the extension fails for another reason, the supervisor tries
 * again later. */
static bool ensure_validity(struct redlock *redlock, struct redlock_lock *lock)
{
    return redlock_left_ms(lock) >= lock->ttl_ms / 3 * 2 ||
           redlock_extend(redlock, lock, lock->ttl_ms) != REDLOCK_GONE;
}

/* The rest of --wait, which is one time limit for all locks. At least 1 ms, because 0 means
 * --nonblock, which has another exit code. */
static int64_t rest_of_wait_ms(const struct options *options, int64_t started_ns)
{
    if (options->wait_ms <= 0)
        return options->wait_ms; /* WAIT_FOREVER, or no wait */
    int64_t left_ms = options->wait_ms - (clock_boottime_ns() - started_ns) / NS_PER_MS;
    return left_ms > 0 ? left_ms : 1;
}

/* With --also, runs another `redlock run` under the first lock, which takes the other locks. */
static int run_nested(const struct options *options, int64_t started_ns, struct redlock *redlock,
                      const struct redlock_lock *lock, const sigset_t *mask)
{
    struct options first = *options;
    first.wait_ms = rest_of_wait_ms(options, started_ns);
    first.argv = nested_argv(&first);
    int code =
        first.argv != NULL ? run(&first, redlock, lock, mask) : failed("cannot start a process");
    nested_free(first.argv);
    return code;
}

int command_run(const struct options *options)
{
    const int64_t started_ns = clock_boottime_ns();
    struct redlock_lock lock;
    int64_t hint_ms = -1;
    int code;
    struct suspension suspension;
    const char *hidden = process_tree_why_hidden();
    if (hidden != NULL) {
        report_message("/proc does not show all processes of the command: %s", hidden);
        return EXIT_FAILED;
    }
    if (options->also_count > 0 && !daemon_can_renew_secret(options))
        return report_status(options, REDLOCK_INVALID, -1,
                             "with --also, --secret-file must be a regular file: "
                             "it is read once for each lock");
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status;
    suspension_begin(&suspension);
    do
        status = wait_for_lock(redlock, options, true, &suspension, &lock, &hint_ms);
    while (status == REDLOCK_OK && !ensure_validity(redlock, &lock));
    if (status == REDLOCK_OK) {
        const sigset_t *mask = suspension_hand_over(&suspension);
        code = options->also_count > 0 ? run_nested(options, started_ns, redlock, &lock, mask)
                                       : run(options, redlock, &lock, mask);
    } else {
        suspension_end(&suspension);
        code = wait_report(options, redlock, status, hint_ms);
    }
    redlock_free(redlock);
    return code;
}
