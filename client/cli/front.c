#include "client/cli/front.h"

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

#include "client/cli/brood.h"
#include "client/cli/clock.h"
#include "client/cli/exits.h"
#include "client/cli/foreground.h"
#include "client/cli/keeper.h"
#include "client/cli/lease.h"
#include "client/cli/report.h"

static const int forwarded[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

struct front {
    const struct options *options;
    struct redlock *redlock;
    const struct redlock_lock *lock;
    struct watch *watch; /* shared with the keeper */
    int64_t patience_ns; /* with a keeper that let the watch pass */
    pid_t keeper;
    int words;     /* the socket to it */
    pid_t command; /* 0: not started yet */
    int signals;   /* a signalfd */
    int timer;
    sigset_t mask; /* as it was */
    struct sigaction on_child;
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
    void *memory =
        mmap(NULL, sizeof(struct watch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    lease_init(&lease, front->lock->ttl_ms * NS_PER_MS, front->options->grace_ms * NS_PER_MS,
               front->lock->deadline_ns);
    front->watch = memory;
    front->patience_ns = lease_margin_ns(&lease) / 2;
    atomic_init(&front->watch->kill_ns, lease_kill_ns(&lease));
    return true;
}

/* All signals are blocked while the keeper starts; of ours, those stay so that are forwarded. */
static void block_signals(struct front *front)
{
    sigset_t all;
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &front->mask);
    /* Where it is ignored, children leave nothing to wait for. */
    sigaction(SIGCHLD, &by_default, &front->on_child);
}

static void watch_signals(struct front *front)
{
    sigset_t ours;
    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        sigaddset(&ours, forwarded[i]);
    front->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    sigorset(&ours, &ours, &front->mask);
    sigprocmask(SIG_SETMASK, &ours, NULL);
}

static bool start_keeper(struct front *front)
{
    int words[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, words) != 0)
        return false;
    fflush(NULL);
    front->words = words[0];
    pid_t self = getpid();
    front->keeper = fork();
    if (front->keeper == 0) {
        close(words[0]);
        keeper_run(&(struct keeper_plan){
            .options = front->options,
            .redlock = front->redlock,
            .lock = front->lock,
            .mask = &front->mask,
            .on_child = &front->on_child,
            .front = self,
            .words = words[1],
            .watch = front->watch,
        });
    }
    close(words[1]);
    return front->keeper > 0;
}

/* --- terminal and signals --- */

/* Stop ourselves as the command was stopped, so that our shell sees what it would see of the
 * command alone. Returns when somebody has continued us. */
static void stop_like_command(struct front *front, int signal)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    struct sigaction before;
    sigset_t only;
    bool typed = front->terminal.lent && signal == SIGTSTP;
    foreground_take_back(&front->terminal, false);
    sigemptyset(&only);
    sigaddset(&only, signal);
    sigaction(signal, &by_default, &before);
    /* ^Z is for all that the terminal's group has, so for a script around us too. */
    kill(typed ? 0 : getpid(), signal);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
    sigaction(signal, &before, NULL);
    foreground_lend(&front->terminal, front->command);
    kill(-front->command, SIGCONT);
}

static void forward_signals(struct front *front)
{
    struct signalfd_siginfo info;
    while (read(front->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        /* "fg" of a shell: the terminal is ours again. */
        if (info.ssi_signo == SIGCONT)
            foreground_lend(&front->terminal, front->command);
        kill(-front->command, (int)info.ssi_signo);
    }
}

/* --- the end --- */

/* ^C was typed to the command alone; a script around us has to hear of it too. */
static void pass_on_interrupt(void)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGINT);
    sigaction(SIGINT, &by_default, NULL);
    kill(0, SIGINT);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
}

static int finish(struct front *front, const struct word *word)
{
    char name[REPORT_NAME];
    bool interrupted = front->terminal.lent && word->by_signal && word->value == SIGINT;
    foreground_take_back(&front->terminal, word->by_signal);
    waitpid(front->keeper, NULL, 0);
    if (word->text[0] != '\0')
        report_message("%s: %s", report_name(front->lock->resource, name), word->text);
    if (word->lost)
        return EXIT_LOST;
    if (interrupted)
        pass_on_interrupt();
    return word->by_signal ? EXIT_SIGNAL + word->value : word->value;
}

/* The keeper is dead, or does not do what it is there for: nothing that was started may live. */
static void end_all(struct front *front)
{
    pid_t leader = front->command > 0 ? front->command : front->keeper;
    brood_kill(leader);
    waitpid(leader, NULL, 0);
    foreground_take_back(&front->terminal, true);
}

static int on_keeper_gone(struct front *front)
{
    bool started = front->command > 0;
    end_all(front);
    if (started)
        report_message("its keeper was killed, and so is the command");
    return EXIT_FAILED;
}

static int on_keeper_stuck(struct front *front)
{
    end_all(front);
    fprintf(
        stderr,
        "redlock: %s is lost: redlock itself was stopped for too long; the command was killed\n",
        front->lock->resource);
    return EXIT_LOST;
}

/* --- the loop --- */

enum { RUNNING = -1 };

/* RUNNING, or the exit code. */
static int read_word(struct front *front)
{
    struct word word;
    char name[REPORT_NAME];
    ssize_t len = recv(front->words, &word, sizeof(word), MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return RUNNING;
    if (len != (ssize_t)sizeof(word))
        return on_keeper_gone(front);
    switch (word.kind) {
    case WORD_STARTED:
        front->command = word.value;
        foreground_lend(&front->terminal, front->command);
        word = (struct word){.kind = WORD_GO};
        (void)!send(front->words, &word, sizeof(word), MSG_NOSIGNAL);
        return RUNNING;
    case WORD_STOPPED:
        stop_like_command(front, word.value);
        return RUNNING;
    case WORD_LOST:
        report_message("%s is lost: %s", report_name(front->lock->resource, name), word.text);
        return RUNNING;
    case WORD_ENDED:
        return finish(front, &word);
    case WORD_GO:
        break;
    }
    return RUNNING;
}

static int loop(struct front *front)
{
    for (;;) {
        int64_t stuck_ns = atomic_load(&front->watch->kill_ns) + front->patience_ns;
        struct pollfd fds[] = {
            {.fd = front->words, .events = POLLIN},
            {.fd = front->timer, .events = POLLIN},
            /* Only what has a process to go to. */
            {.fd = front->command > 0 ? front->signals : -1, .events = POLLIN},
        };
        clock_set_timer(front->timer, stuck_ns);
        poll(fds, sizeof(fds) / sizeof(fds[0]), -1);
        /* Time first, as in the keeper. It may have moved the watch on while we were stopped. */
        if (clock_now_ns() >= atomic_load(&front->watch->kill_ns) + front->patience_ns)
            return on_keeper_stuck(front);
        if (front->command > 0)
            forward_signals(front);
        int code = read_word(front);
        if (code != RUNNING)
            return code;
    }
}

int front_run(const struct options *options, struct redlock *redlock,
              const struct redlock_lock *lock)
{
    struct front front = {.options = options, .redlock = redlock, .lock = lock};
    if (!brood_is_visible()) {
        report_message("/proc does not tell what the command has started: it is not mounted, or it "
                       "is that of another PID namespace");
        return EXIT_FAILED;
    }
    if (!share_watch(&front))
        return failed("no memory to share");
    foreground_open(&front.terminal);
    brood_adopt();
    block_signals(&front);
    if (!start_keeper(&front))
        return failed("cannot start a process");
    watch_signals(&front);
    front.timer = clock_timer();
    if (front.signals < 0 || front.timer < 0) {
        end_all(&front);
        return failed("no descriptors left");
    }
    int code = loop(&front);
    foreground_close(&front.terminal);
    return code;
}
