/*
 * `redlock run`: gets the lock, and is the process that was started (the front). It lends its
 * terminal to the command, passes on signals, watches the keeper (keeper.h), and has the exit code.
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
#include "client/cli/keeper.h"
#include "client/cli/lease.h"
#include "client/cli/process_tree.h"
#include "client/cli/report.h"
#include "client/cli/signals.h"
#include "client/cli/terminal.h"
#include "client/cli/wait.h"
#include "protocol/units.h"

static const int forwarded[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

/* To connect, and for the answer, and then some. */
static const int64_t RELEASE_PATIENCE_NS = (int64_t)3 * RELEASE_TIMEOUT_MS * NS_PER_MS;

struct front {
    struct keeper_plan plan;
    int64_t patience_ns; /* with a keeper that let the shared pass */
    pid_t keeper;
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

/* The keeper has a first deadline before it has said anything. */
static bool share_watch(struct front *front)
{
    struct lease lease;
    void *memory = mmap(NULL, sizeof(struct shared_deadline), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    lease_init(&lease, front->plan.lock->ttl_ms * NS_PER_MS,
               front->plan.options->grace_ms * NS_PER_MS, front->plan.lock->deadline_ns);
    front->plan.shared = memory;
    front->patience_ns = lease_margin_ns(&lease) / 2;
    atomic_init(&front->plan.shared->kill_ns, lease_kill_ns(&lease));
    return true;
}

/* All signals are blocked while the keeper starts; of ours, those stay so that are forwarded. */
static void block_signals(struct front *front)
{
    sigset_t all;
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    /* Where it is ignored, children leave nothing to wait for. */
    sigaction(SIGCHLD, &by_default, &front->plan.on_child);
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
static bool open_descriptors(struct front *front)
{
    const sigset_t ours = forwarded_ones();
    front->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    front->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return front->signals >= 0 && front->timer >= 0 && process_tree_prepare();
}

static void unblock_signals(const struct front *front)
{
    sigset_t ours = forwarded_ones();
    /* A message is written from the background, too, with `stty tostop`; and if nobody reads it any
     * more, that is no reason to end. */
    sigaddset(&ours, SIGTTOU);
    sigaddset(&ours, SIGPIPE);
    sigorset(&ours, &ours, front->plan.mask);
    sigprocmask(SIG_SETMASK, &ours, NULL);
}

static bool start_keeper(struct front *front)
{
    int ipc_fd[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ipc_fd) != 0)
        return false;
    fflush(NULL);
    front->ipc_fd = ipc_fd[0];
    front->plan.ipc_fd = ipc_fd[1];
    front->plan.front = getpid();
    front->keeper = fork();
    if (front->keeper == 0) {
        close(ipc_fd[0]);
        keeper_run(&front->plan);
    }
    close(ipc_fd[1]);
    return front->keeper > 0;
}

/* --- terminal and signals --- */

/* Returns when somebody has continued us. */
static void stop(struct front *front, int signal)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    /* Whom the kernel stops for its terminal, it stops with all of its group; that is what a shell
     * continues, and what a script around us is in. */
    bool all =
        signal == SIGTTIN || signal == SIGTTOU || (front->terminal.lent && signal == SIGTSTP);
    struct sigaction before = by_default; /* SIGSTOP has no other, and none is told */
    const sigset_t only = signal_only(signal);
    foreground_take_back(&front->terminal, false);
    sigaction(signal, &by_default, &before);
    kill(all ? 0 : getpid(), signal);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
    sigaction(signal, &before, NULL);
}

/* Stop ourselves as the command was stopped, so that our shell sees what it would see of the
 * command alone. The command may have gone on in the meantime, or go on while we stop: what we say
 * and what we look at first lets the keeper see that. */
static void stop_like_command(struct front *front, int signal)
{
    bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    const sigset_t only = signal_only(SIGCONT);
    atomic_store(&front->plan.shared->halted, true);
    bool stopped = atomic_load(&front->plan.shared->stopped);
    if (stopped)
        stop(front, signal);
    atomic_store(&front->plan.shared->halted, false);
    if (!stopped)
        return;
    /* Taken here, it is not forwarded: the command is told to go on by what follows, and told so
     * twice it would forget a stop that came in between. */
    bool continued = sigtimedwait(&only, NULL, &(struct timespec){0}) == SIGCONT;
    foreground_lend(&front->terminal, front->command);
    /* Nobody can fetch an orphaned group to the terminal, so nobody stops it: the command would be
     * stopped again and again. It is told what the kernel tells such groups. */
    if (wants_terminal && !front->terminal.lent && !continued)
        kill(-front->command, SIGHUP);
    kill(-front->command, SIGCONT);
}

static void forward_signals(struct front *front)
{
    struct signalfd_siginfo info;
    while (read(front->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        /* "fg" of a shell: the terminal is ours again. */
        if (info.ssi_signo == SIGCONT)
            foreground_lend(&front->terminal, front->command);
        /* From the keeper, who has seen the command go on. */
        if (info.ssi_signo == SIGCONT && info.ssi_pid == (uint32_t)front->keeper)
            continue;
        kill(-front->command, (int)info.ssi_signo);
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

static int finish(struct front *front, const char *text)
{
    char name[REPORT_NAME];
    const struct ipc_message *how = &front->how;
    bool interrupted = front->terminal.lent && how->by_signal && how->value == SIGINT;
    foreground_take_back(&front->terminal, how->by_signal);
    /* It has nothing left to do, even if somebody has stopped it. */
    kill(front->keeper, SIGKILL);
    waitpid(front->keeper, NULL, 0);
    /* The command has come to us with that, as a zombie. Process 1 of a container may wait for
     * nobody, so it is not left to that. */
    waitpid(front->command, NULL, WNOHANG);
    if (text[0] != '\0')
        report_message("%s: %s", report_name(front->plan.lock->resource, name), text);
    if (how->lost)
        return EXIT_LOST;
    if (interrupted)
        pass_on_interrupt();
    return how->by_signal ? EXIT_SIGNAL + how->value : how->value;
}

static int finish_without_release(struct front *front)
{
    return finish(front, front->how.lost ? "" : "could not be released, and ends by itself");
}

/* The keeper is dead, or does not do what it is there for: nothing that was started may live. */
static void end_all(struct front *front)
{
    pid_t leader = front->command > 0 ? front->command : front->keeper;
    process_tree_kill(leader);
    waitpid(leader, NULL, 0);
    foreground_take_back(&front->terminal, true);
}

static int on_keeper_gone(struct front *front)
{
    if (front->command > 0) {
        end_all(front);
        report_message("its keeper was killed, and so is the command");
    } else {
        /* Nobody has told a command to begin, and without a keeper it never will. */
        waitpid(front->keeper, NULL, 0);
    }
    return EXIT_FAILED;
}

static int on_keeper_stuck(struct front *front)
{
    char name[REPORT_NAME];
    end_all(front);
    report_message("%s is lost: redlock itself was stopped for too long, or could not end the "
                   "command in time; it has ended now",
                   report_name(front->plan.lock->resource, name));
    return EXIT_LOST;
}

/* --- the loop --- */

enum { RUNNING = -1 };

/* RUNNING, or the exit code. */
static int read_word(struct front *front)
{
    struct ipc_message message;
    char name[REPORT_NAME];
    ssize_t len = recv(front->ipc_fd, &message, sizeof(message), MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return RUNNING;
    if (len != (ssize_t)sizeof(message))
        return front->ended ? finish_without_release(front) : on_keeper_gone(front);
    switch (message.kind) {
    case IPC_STARTED:
        front->command = message.value;
        foreground_lend(&front->terminal, front->command);
        message = (struct ipc_message){.kind = IPC_GO};
        (void)!send(front->ipc_fd, &message, sizeof(message), MSG_NOSIGNAL);
        return RUNNING;
    case IPC_STOPPED:
        stop_like_command(front, message.value);
        return RUNNING;
    case IPC_LOST:
        report_message("%s is lost: %s", report_name(front->plan.lock->resource, name),
                       message.text);
        return RUNNING;
    case IPC_ENDED:
        front->ended = true;
        front->how = message;
        front->over_ns = clock_boottime_ns() + RELEASE_PATIENCE_NS;
        return RUNNING;
    case IPC_OVER:
        return finish(front, message.text);
    case IPC_GO:
        break;
    }
    return RUNNING;
}

static int64_t stuck_at_ns(const struct front *front)
{
    return front->ended ? front->over_ns
                        : atomic_load(&front->plan.shared->kill_ns) + front->patience_ns;
}

static int loop(struct front *front)
{
    for (;;) {
        int64_t stuck_ns = stuck_at_ns(front);
        struct pollfd fds[] = {
            {.fd = front->ipc_fd, .events = POLLIN},
            {.fd = front->timer, .events = POLLIN},
            /* Only what has a process to go to. */
            {.fd = front->command > 0 ? front->signals : -1, .events = POLLIN},
        };
        clock_set_timer(front->timer, stuck_ns);
        poll(fds, sizeof(fds) / sizeof(fds[0]), -1);
        /* Time first, as in the keeper. It may have moved the shared on while we were stopped. */
        if (!front->ended && clock_boottime_ns() >= stuck_at_ns(front))
            return on_keeper_stuck(front);
        if (front->command > 0)
            forward_signals(front);
        int code = read_word(front);
        if (code != RUNNING)
            return code;
        if (front->ended && clock_boottime_ns() >= front->over_ns)
            return finish_without_release(front);
    }
}

/* Run the command of the options under the lock, which the connection of the handle holds, to the
 * end of both. mask: the signals that are blocked for the command. Returns the exit code. */
static int run(const struct options *options, struct redlock *redlock,
               const struct redlock_lock *lock, const sigset_t *mask)
{
    struct front front = {
        .plan = {.options = options, .redlock = redlock, .lock = lock, .mask = mask}};
    if (!open_descriptors(&front) || !process_tree_adopt())
        return failed("cannot start a process");
    if (!share_watch(&front))
        return failed("no memory to share");
    foreground_open(&front.terminal);
    block_signals(&front);
    if (!start_keeper(&front))
        return failed("cannot start a process");
    unblock_signals(&front);
    int code = loop(&front);
    foreground_close(&front.terminal);
    return code;
}

/* Whoever waited and was stopped meanwhile may have little left of what it was granted. Undecided,
 * it stands as it is: the keeper asks again. */
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
