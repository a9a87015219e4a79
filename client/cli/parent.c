/*
 * `redlock run`: gets the lock, and is the process that was started (the parent). It lends its
 * terminal to the command, passes on signals, watches the supervisor (supervisor.h), and has the
 * exit code.
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
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/clock.h"
#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/lease.h"
#include "client/cli/process_tree.h"
#include "client/cli/report.h"
#include "client/cli/signals.h"
#include "client/cli/supervisor.h"
#include "client/cli/terminal.h"
#include "client/cli/wait.h"
#include "protocol/units.h"

static const int forwarded[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

/* To connect, and for the answer, and then some. */
static const int64_t RELEASE_TIMEOUT_NS = (int64_t)3 * RELEASE_TIMEOUT_MS * NS_PER_MS;

struct parent {
    struct supervisor_plan plan;
    int64_t timeout_ns; /* with a supervisor that let the shared pass */
    pid_t supervisor;
    int ipc_fd;    /* the socket to it */
    pid_t command; /* 0: not started yet */
    bool ended;    /* it has, and this is how */
    struct ipc_message how;
    int64_t over_ns; /* by then the lock has to be given back */
    int signals;     /* a signalfd */
    int timer;
    struct foreground terminal;
};

/* --- start --- */

static int failed(const char *what)
{
    report_message("%s: %s", what, strerror(errno));
    return EXIT_FAILED;
}

/* The supervisor has a first deadline before it has said anything. */
static bool share_watch(struct parent *parent)
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

/* All signals are blocked while the supervisor starts; of ours, those stay so that are forwarded.
 */
static void block_signals(struct parent *parent)
{
    sigset_t all;
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    /* Where it is ignored, children leave nothing to wait for. */
    sigaction(SIGCHLD, &by_default, &parent->plan.on_child);
}

static sigset_t forwarded_ones(void)
{
    sigset_t ours;
    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        sigaddset(&ours, forwarded[i]);
    return ours;
}

/* All that will be needed, as long as nothing has been started. */
static bool open_descriptors(struct parent *parent)
{
    const sigset_t ours = forwarded_ones();
    parent->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    parent->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return parent->signals >= 0 && parent->timer >= 0 && process_tree_prepare();
}

static void unblock_signals(const struct parent *parent)
{
    sigset_t ours = forwarded_ones();
    /* A message is written from the background, too, with `stty tostop`; and if nobody reads it any
     * more, that is no reason to end. */
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

/* Returns when somebody has continued us. */
static void stop(struct parent *parent, int signal)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    /* Whom the kernel stops for its terminal, it stops with all of its group; that is what a shell
     * continues, and what a script around us is in. */
    bool all =
        signal == SIGTTIN || signal == SIGTTOU || (parent->terminal.lent && signal == SIGTSTP);
    struct sigaction before = by_default; /* SIGSTOP has no other, and none is told */
    const sigset_t only = signal_only(signal);
    foreground_take_back(&parent->terminal, false);
    sigaction(signal, &by_default, &before);
    kill(all ? 0 : getpid(), signal);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
    sigaction(signal, &before, NULL);
}

/* Stop ourselves as the command was stopped, so that our shell sees what it would see of the
 * command alone. The command may have gone on in the meantime, or go on while we stop: what we say
 * and what we look at first lets the supervisor see that. */
static void stop_like_command(struct parent *parent, int signal)
{
    bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    const sigset_t only = signal_only(SIGCONT);
    atomic_store(&parent->plan.shared->halted, true);
    bool stopped = atomic_load(&parent->plan.shared->stopped);
    if (stopped)
        stop(parent, signal);
    atomic_store(&parent->plan.shared->halted, false);
    if (!stopped)
        return;
    /* Taken here, it is not forwarded: the command is told to go on by what follows, and told so
     * twice it would forget a stop that came in between. */
    bool continued = sigtimedwait(&only, NULL, &(struct timespec){0}) == SIGCONT;
    foreground_lend(&parent->terminal, parent->command);
    /* Nobody can fetch an orphaned group to the terminal, so nobody stops it: the command would be
     * stopped again and again. It is told what the kernel tells such groups. */
    if (wants_terminal && !parent->terminal.lent && !continued)
        kill(-parent->command, SIGHUP);
    kill(-parent->command, SIGCONT);
}

static void forward_signals(struct parent *parent)
{
    struct signalfd_siginfo info;
    while (read(parent->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        /* "fg" of a shell: the terminal is ours again. */
        if (info.ssi_signo == SIGCONT)
            foreground_lend(&parent->terminal, parent->command);
        /* From the supervisor, who has seen the command go on. */
        if (info.ssi_signo == SIGCONT && info.ssi_pid == (uint32_t)parent->supervisor)
            continue;
        kill(-parent->command, (int)info.ssi_signo);
    }
}

/* --- the end --- */

/* ^C was typed to the command alone; a script around us has to hear of it too. */
static void pass_on_interrupt(void)
{
    const sigset_t only = signal_only(SIGINT);
    signal(SIGINT, SIG_DFL);
    kill(0, SIGINT);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
}

static int finish(struct parent *parent, const char *text)
{
    char name[REPORT_NAME];
    const struct ipc_message *how = &parent->how;
    bool interrupted = parent->terminal.lent && how->by_signal && how->value == SIGINT;
    foreground_take_back(&parent->terminal, how->by_signal);
    /* It has nothing left to do, even if somebody has stopped it. */
    kill(parent->supervisor, SIGKILL);
    waitpid(parent->supervisor, NULL, 0);
    /* The command has come to us with that, as a zombie. Process 1 of a container may wait for
     * nobody, so it is not left to that. */
    waitpid(parent->command, NULL, WNOHANG);
    if (text[0] != '\0')
        report_message("%s: %s", report_name(parent->plan.lock->resource, name), text);
    if (how->lost)
        return EXIT_LOST;
    if (interrupted)
        pass_on_interrupt();
    return how->by_signal ? EXIT_SIGNAL + how->value : how->value;
}

static int finish_without_release(struct parent *parent)
{
    return finish(parent, parent->how.lost ? "" : "could not be released, and ends by itself");
}

/* The supervisor is dead, or does not do what it is there for: nothing that was started may live.
 */
static void end_all(struct parent *parent)
{
    pid_t leader = parent->command > 0 ? parent->command : parent->supervisor;
    process_tree_kill(leader);
    waitpid(leader, NULL, 0);
    foreground_take_back(&parent->terminal, true);
}

static int on_supervisor_gone(struct parent *parent)
{
    if (parent->command > 0) {
        end_all(parent);
        report_message("its supervisor was killed, and so is the command");
    } else {
        /* Nobody has told a command to begin, and without a supervisor it never will. */
        waitpid(parent->supervisor, NULL, 0);
    }
    return EXIT_FAILED;
}

static int on_supervisor_stuck(struct parent *parent)
{
    char name[REPORT_NAME];
    end_all(parent);
    report_message("%s is lost: redlock itself was stopped for too long, or could not end the "
                   "command in time; it has ended now",
                   report_name(parent->plan.lock->resource, name));
    return EXIT_LOST;
}

/* --- the loop --- */

enum { RUNNING = -1 };

/* RUNNING, or the exit code. */
static int read_word(struct parent *parent)
{
    struct ipc_message message;
    char name[REPORT_NAME];
    ssize_t len = recv(parent->ipc_fd, &message, sizeof(message), MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return RUNNING;
    if (len != (ssize_t)sizeof(message))
        return parent->ended ? finish_without_release(parent) : on_supervisor_gone(parent);
    switch (message.kind) {
    case IPC_STARTED:
        parent->command = message.value;
        foreground_lend(&parent->terminal, parent->command);
        message = (struct ipc_message){.kind = IPC_GO};
        (void)!send(parent->ipc_fd, &message, sizeof(message), MSG_NOSIGNAL);
        return RUNNING;
    case IPC_STOPPED:
        stop_like_command(parent, message.value);
        return RUNNING;
    case IPC_LOST:
        report_message("%s is lost: %s", report_name(parent->plan.lock->resource, name),
                       message.text);
        return RUNNING;
    case IPC_ENDED:
        parent->ended = true;
        parent->how = message;
        parent->over_ns = clock_boottime_ns() + RELEASE_TIMEOUT_NS;
        return RUNNING;
    case IPC_OVER:
        return finish(parent, message.text);
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

static int loop(struct parent *parent)
{
    for (;;) {
        int64_t stuck_ns = stuck_at_ns(parent);
        struct pollfd fds[] = {
            {.fd = parent->ipc_fd, .events = POLLIN},
            {.fd = parent->timer, .events = POLLIN},
            /* Only what has a process to go to. */
            {.fd = parent->command > 0 ? parent->signals : -1, .events = POLLIN},
        };
        clock_set_timer(parent->timer, stuck_ns);
        poll(fds, sizeof(fds) / sizeof(fds[0]), -1);
        /* Time first, as in the supervisor. It may have moved the shared on while we were stopped.
         */
        if (!parent->ended && clock_boottime_ns() >= stuck_at_ns(parent))
            return on_supervisor_stuck(parent);
        if (parent->command > 0)
            forward_signals(parent);
        int code = read_word(parent);
        if (code != RUNNING)
            return code;
        if (parent->ended && clock_boottime_ns() >= parent->over_ns)
            return finish_without_release(parent);
    }
}

/* Run the command of the options under the lock, which the connection of the handle holds, to the
 * end of both. mask: the signals that are blocked for the command. Returns the exit code. */
static int run(const struct options *options, struct redlock *redlock,
               const struct redlock_lock *lock, const sigset_t *mask)
{
    struct parent parent = {
        .plan = {.options = options, .redlock = redlock, .lock = lock, .mask = mask}};
    if (!open_descriptors(&parent) || !process_tree_adopt())
        return failed("cannot start a process");
    if (!share_watch(&parent))
        return failed("no memory to share");
    foreground_open(&parent.terminal);
    block_signals(&parent);
    if (!start_supervisor(&parent))
        return failed("cannot start a process");
    unblock_signals(&parent);
    int code = loop(&parent);
    foreground_close(&parent.terminal);
    return code;
}

/* Whoever waited and was stopped meanwhile may have little left of what it was granted. Undecided,
 * it stands as it is: the supervisor asks again. */
static bool is_fresh(struct redlock *redlock, struct redlock_lock *lock)
{
    return redlock_left_ms(lock) >= lock->ttl_ms / 3 * 2 ||
           redlock_extend(redlock, lock, lock->ttl_ms) != REDLOCK_GONE;
}

int command_run(const struct options *options)
{
    struct redlock_lock lock;
    int64_t hint_ms = -1;
    int code;
    struct suspension suspension;
    const char *hidden = process_tree_is_hidden();
    if (hidden != NULL) {
        report_message("/proc does not show all that the command may start: %s", hidden);
        return EXIT_FAILED;
    }
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status;
    suspension_begin(&suspension);
    do
        status = wait_for_lock(redlock, options, true, &suspension, &lock, &hint_ms);
    while (status == REDLOCK_OK && !is_fresh(redlock, &lock));
    if (status == REDLOCK_OK) {
        code = run(options, redlock, &lock, suspension_hand_over(&suspension));
    } else {
        suspension_end(&suspension);
        code = wait_report(options, redlock, status, hint_ms);
    }
    redlock_free(redlock);
    return code;
}
