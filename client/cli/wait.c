#include "client/cli/wait.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/cli/clock.h"
#include "client/cli/daemon.h"
#include "client/cli/duration.h"
#include "client/cli/report.h"
#include "client/cli/retry_policy.h"
#include "client/cli/signals.h"
#include "client/cli/terminal.h"
#include "protocol/limits.h"
#include "protocol/units.h"

enum {
    PROBE_INTERVAL_S = 10,
    SHOWN_MAX = 512,
    MESSAGE_MAX = 1024,
};

struct wait {
    struct redlock *redlock;
    const struct options *options;
    const struct suspension *suspension;
    bool hold;
    int64_t ttl_ms;
    int64_t started_ns;
    int64_t ends_ns;  /* end of the wait; INT64_MAX: never */
    int64_t place_ns; /* when to ask for the place in the queue */
    int64_t query_ns; /* when to ask whether enough masters can vote */
    uint64_t acquire; /* id of the LOCK under way; 0: none, start one at retry_ns */
    uint64_t place;   /* id of the place request under way; 0: none */
    uint64_t query;   /* id of the query under way; 0: none */
    int64_t retry_ns;
    bool served;          /* the daemon has answered PING on this connection or the last one */
    bool away_reported;   /* the user knows that the daemon is away; reset when it is back */
    bool quorum_reported; /* the user knows that too few masters can vote; reset when enough can */
    bool nested;          /* an enclosing `redlock run` has the same name; reset by the warning */
    bool has_terminal;    /* standard error is a terminal that can show the wait */
    bool line_shown;      /* the terminal shows a line that must be removed */
};

/* --- signals --- */

/* Signals that are not handled here: errors of the program, those that cannot be blocked, and those
 * that are ignored by default or concern only a process in the background. */
static const int left_alone[] = {SIGSEGV,  SIGBUS, SIGFPE,  SIGILL,  SIGTRAP,
                                 SIGABRT,  SIGSYS, SIGKILL, SIGSTOP, SIGCHLD,
                                 SIGWINCH, SIGURG, SIGCONT, SIGTTIN, SIGTTOU};

/* Whether the signal would stop or end the process if it were not blocked. The kernel protects
 * process 1 from signals without a handler. */
static bool would_act(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN &&
           (action.sa_handler != SIG_DFL || getpid() != 1);
}

/* With `allowed`, lets signals stop or end the process at once; without, blocks them again. They
 * may act only during a call in which the daemon cannot grant the process a lock. */
static void allow_signals(const struct suspension *suspension, bool allowed)
{
    sigprocmask(allowed ? SIG_UNBLOCK : SIG_BLOCK, &suspension->handled, NULL);
}

void suspension_begin(struct suspension *suspension)
{
    const sigset_t output = signal_only(SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &suspension->mask);
    sigemptyset(&suspension->handled);
    for (int signal = 1; signal <= SIGRTMAX; signal++)
        if (!sigismember(&suspension->mask, signal) && would_act(signal))
            sigaddset(&suspension->handled, signal);
    for (size_t i = 0; i < sizeof(left_alone) / sizeof(left_alone[0]); i++)
        sigdelset(&suspension->handled, left_alone[i]);
    suspension->fd = signalfd(-1, &suspension->handled, SFD_CLOEXEC | SFD_NONBLOCK);
    if (suspension->fd < 0)
        sigemptyset(&suspension->handled);
    allow_signals(suspension, false);
}

const sigset_t *suspension_hand_over(struct suspension *suspension)
{
    if (suspension->fd >= 0)
        close(suspension->fd);
    suspension->fd = -1;
    return &suspension->mask;
}

void suspension_end(struct suspension *suspension)
{
    suspension_hand_over(suspension);
    sigprocmask(SIG_SETMASK, &suspension->mask, NULL);
}

/* The pending signal to handle; 0: none. Leaves it pending, so that a SIGCONT before the stop
 * cancels the stop, as for any process. */
static int pending_signal(const struct suspension *suspension)
{
    sigset_t pending;
    if (sigpending(&pending) != 0)
        return 0;
    sigandset(&pending, &pending, &suspension->handled);
    for (int signal = 1; signal <= SIGRTMAX; signal++)
        if (sigismember(&pending, signal))
            return signal;
    return 0;
}

/* Leaves the queue, releases a lock that was granted meanwhile, and ends the process by the pending
 * signal. */
static _Noreturn void end_by_signal(const struct suspension *suspension, struct redlock *redlock,
                                    int signal)
{
    redlock_free(redlock);
    allow_signals(suspension, true);
    /* Not reached, unless a handler returns. */
    _exit(EXIT_SIGNAL + signal);
}

/* If a signal has come that ends the process, releases the lock and ends it. */
static void end_if_signalled(const struct suspension *suspension, struct redlock *redlock,
                             struct redlock_lock *lock)
{
    int signal = pending_signal(suspension);
    if (signal == 0 || signal == SIGTSTP)
        return;
    (void)redlock_start_release(redlock, lock, NULL);
    end_by_signal(suspension, redlock, signal);
}

bool wait_for_output(const struct suspension *suspension, struct redlock *redlock,
                     struct redlock_lock *lock)
{
    const sigset_t stop = signal_only(SIGTSTP);
    struct pollfd fds[] = {
        {.fd = STDOUT_FILENO, .events = POLLOUT},
        {.fd = suspension->fd, .events = POLLIN},
    };
    int64_t left_ms;
    do {
        /* The process stops here if SIGTSTP is pending. */
        if (fds[1].revents != 0) {
            sigprocmask(SIG_UNBLOCK, &stop, NULL);
            sigprocmask(SIG_BLOCK, &stop, NULL);
        }
        left_ms = redlock_left_ms(lock);
        poll(fds, sizeof(fds) / sizeof(fds[0]), (int)max(left_ms, 0));
        end_if_signalled(suspension, redlock, lock);
    } while (fds[0].revents == 0 && left_ms > 0);
    return fds[0].revents != 0;
}

/* --- the line on the terminal --- */

static const char *ordinal_ending(unsigned number)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    bool teens = number % 100 >= 11 && number % 100 <= 13;
    return endings[!teens && number % 10 <= 3 ? number % 10 : 0];
}

/* "waiting for deploy, 3rd in line, 12s" */
static void show(struct wait *wait, unsigned place, int64_t now_ns)
{
    char name[REPORT_NAME], age[DURATION_PRINTED], in_line[32] = "", line[SHOWN_MAX];
    if (!wait->has_terminal || !terminal_takes_output(STDERR_FILENO))
        return;
    if (place > 0)
        snprintf(in_line, sizeof(in_line), "%u%s in line, ", place, ordinal_ending(place));
    duration_print((now_ns - wait->started_ns) / NS_PER_S * MS_PER_S, age);
    snprintf(line, sizeof(line), "waiting for %s, %s%s", report_name(wait->options->name, name),
             in_line, age);
    /* Truncate to one row: a line that wraps could not be erased. */
    fprintf(stderr, "\r\033[K%.*s", terminal_columns(STDERR_FILENO) - 1, line);
    wait->line_shown = true;
}

static void unshow(struct wait *wait)
{
    if (wait->line_shown && terminal_takes_output(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    wait->line_shown = false;
}

/* --- the wait --- */

/* Checks with PING whether the daemon serves this connection. Every user may PING, so an error
 * concerns the connection and not the request. */
static enum redlock_status check_access(struct wait *wait)
{
    allow_signals(wait->suspension, true);
    enum redlock_status status = redlock_ping(wait->redlock);
    allow_signals(wait->suspension, false);
    wait->served = status == REDLOCK_OK;
    return status;
}

static enum redlock_status start_lock(struct wait *wait)
{
    const struct options *options = wait->options;
    /* A daemon limits the wait of one LOCK; a longer wait continues with another LOCK. */
    int64_t left_ms = LIMIT_WAIT_MS;
    if (!redlock_is_connected(wait->redlock)) {
        daemon_renew_secret(options, wait->redlock);
        enum redlock_status status = check_access(wait);
        if (status != REDLOCK_OK)
            return status;
    }
    int64_t now_ns = clock_boottime_ns();
    if (wait->ends_ns != INT64_MAX)
        left_ms = min(left_ms, (wait->ends_ns - now_ns) / NS_PER_MS);
    const struct redlock_lock_options lock_options = {
        .wait_ms = max(left_ms, 0),
        .fence = options->fence,
        .hold = wait->hold,
        /* If redlock is killed, processes of COMMAND may outlive it and still rely on the lock. */
        .linger = wait->hold,
        .slots = (unsigned)options->slots,
    };
    wait->place = wait->query = 0;
    return redlock_start_acquire(wait->redlock, options->name, wait->ttl_ms, &lock_options,
                                 &wait->acquire);
}

/* Output that blocks, for example after ^S, would delay the use of a lock that is granted now, and
 * the end by a signal, which is blocked. */
static bool takes_message(void)
{
    struct pollfd output = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && (output.revents & POLLOUT) != 0;
}

/* Whether this status ends the wait. If it does not, schedules the next LOCK. */
static bool is_final(struct wait *wait, enum redlock_status status, bool ended, int64_t now_ns)
{
    const struct access_check access = {.let_in = wait->served, .ended = ended};
    enum retry_decision decision = retry_decide(status, &access, now_ns, wait->ends_ns);
    if (decision == RETRY_NEVER)
        return true;
    if (decision == RETRY_WITH_MESSAGE) {
        unshow(wait);
        if (!wait->away_reported && takes_message()) {
            wait->away_reported = true;
            report_message("%s; trying again", redlock_error(wait->redlock));
        }
    }
    wait->acquire = wait->place = wait->query = 0;
    wait->retry_ns = retry_at_ns(now_ns, wait->ends_ns);
    return false;
}

/* If the default TTL exceeds the daemon's max_ttl, schedules another LOCK with max_ttl. */
static bool shorten(struct wait *wait, enum redlock_status status, int64_t now_ns)
{
    if (status != REDLOCK_REFUSED || (wait->options->given & OPTION_BIT(OPTION_TTL)) != 0 ||
        !ttl_shorten(redlock_error(wait->redlock), &wait->ttl_ms))
        return false;
    wait->acquire = 0;
    wait->retry_ns = now_ns;
    return true;
}

/* Warns once that an enclosing `redlock run` may hold this lock. That command does not hold the
 * lock if it uses other masters, or if its lock was lost or released. */
static void warn_nested(struct wait *wait)
{
    char name[REPORT_NAME];
    if (!wait->nested || !takes_message())
        return;
    wait->nested = false;
    unshow(wait);
    report_message("an enclosing redlock run locked %s ($REDLOCK_HELD) and may still hold it",
                   report_name(wait->options->name, name));
}

static void schedule_questions(struct wait *wait, int64_t now_ns)
{
    wait->place_ns = now_ns + NS_PER_S;
    wait->query_ns = now_ns + (wait->has_terminal ? 1 : PROBE_INTERVAL_S) * NS_PER_S;
}

/* Leaves the queue, then stops, so that other clients can get the lock meanwhile. */
static void suspend(struct wait *wait)
{
    unshow(wait);
    redlock_cancel(wait->redlock, wait->query);
    redlock_cancel(wait->redlock, wait->place);
    redlock_cancel(wait->redlock, wait->acquire);
    wait->acquire = wait->place = wait->query = 0;
    /* Stops until SIGCONT; does not stop if SIGCONT has cancelled the stop. */
    allow_signals(wait->suspension, true);
    allow_signals(wait->suspension, false);
    int64_t now_ns = clock_boottime_ns();
    wait->retry_ns = now_ns;
    schedule_questions(wait, now_ns);
}

/* Asks for the place in the queue. On a terminal, does so each second, to show the place. Without a
 * terminal, does so rarely, to detect a dead daemon. */
static void ask_place(struct wait *wait, int64_t now_ns)
{
    if (wait->acquire == 0 || now_ns < wait->place_ns)
        return;
    if (wait->place != 0)
        show(wait, 0, now_ns);
    else if (redlock_start_place(wait->redlock, wait->options->name, &wait->place) != REDLOCK_OK)
        wait->place = 0;
    wait->place_ns = now_ns + (wait->has_terminal ? 1 : PROBE_INTERVAL_S) * NS_PER_S;
}

/* A waiter gets no reply while too few masters can vote; a query does. For a semaphore, too, the
 * name itself is enough. */
static void ask_quorum(struct wait *wait, int64_t now_ns)
{
    if (wait->acquire == 0 || now_ns < wait->query_ns)
        return;
    if (wait->query == 0 &&
        redlock_start_query(wait->redlock, wait->options->name, &wait->query) != REDLOCK_OK)
        wait->query = 0;
    wait->query_ns = now_ns + PROBE_INTERVAL_S * NS_PER_S;
}

static void on_place(struct wait *wait, const struct redlock_event *event, int64_t now_ns)
{
    wait->place = 0;
    if (event->status == REDLOCK_TIMEOUT) {
        /* The daemon is stopped, or the connection is lost. Give up the LOCK as well, unless the
         * wait is about to end anyway. */
        uint64_t acquire = wait->acquire;
        if (!is_final(wait, event->status, event->ended, now_ns))
            redlock_cancel(wait->redlock, acquire);
    } else if (redlock_is_connected(wait->redlock)) {
        /* Any answer shows that the daemon is alive, even a denied listing. */
        wait->away_reported = false;
        warn_nested(wait);
        show(wait, event->place, now_ns);
    }
}

/* Unlike a request for the place, a query needs the masters, so that a missing answer says nothing
 * about the daemon. */
static void on_query(struct wait *wait, const struct redlock_event *event)
{
    char name[REPORT_NAME];
    const char *message = redlock_error(wait->redlock);
    wait->query = 0;
    if (event->status == REDLOCK_HELD || event->status == REDLOCK_FREE) {
        wait->quorum_reported = false;
    } else if (event->status == REDLOCK_NOQUORUM && quorum_is_missing(message) &&
               !wait->quorum_reported && takes_message()) {
        wait->quorum_reported = true;
        unshow(wait);
        report_message("%s: %s; still waiting", report_name(wait->options->name, name), message);
    }
}

static void wait_for_events(const struct wait *wait, int64_t now_ns)
{
    int64_t until_ns = wait->acquire == 0 ? wait->retry_ns : min(wait->place_ns, wait->query_ns);
    int64_t timeout_ms = until_ns > now_ns ? (until_ns - now_ns) / NS_PER_MS + 1 : 0;
    struct pollfd fds[] = {
        {.fd = redlock_fd(wait->redlock), .events = POLLIN},
        {.fd = wait->suspension->fd, .events = POLLIN},
    };
    poll(fds, sizeof(fds) / sizeof(fds[0]), (int)timeout_ms);
}

static enum redlock_status wait_loop(struct wait *wait, struct redlock_event *event)
{
    for (;;) {
        int signal = pending_signal(wait->suspension);
        if (signal == SIGTSTP)
            suspend(wait);
        else if (signal != 0)
            end_by_signal(wait->suspension, wait->redlock, signal);
        while (redlock_next(wait->redlock, event)) {
            int64_t now_ns = clock_boottime_ns();
            if (event->kind != REDLOCK_EVENT_ANSWER)
                continue;
            if (event->id == wait->place && wait->place != 0)
                on_place(wait, event, now_ns);
            else if (event->id == wait->query && wait->query != 0)
                on_query(wait, event);
            else if (event->id == wait->acquire && wait->acquire != 0 &&
                     !shorten(wait, event->status, now_ns) &&
                     is_final(wait, event->status, event->ended, now_ns))
                return event->status;
        }
        int64_t now_ns = clock_boottime_ns();
        if (wait->acquire == 0 && now_ns >= wait->retry_ns) {
            enum redlock_status status = start_lock(wait);
            bool ended = !redlock_is_connected(wait->redlock);
            if (status != REDLOCK_OK && is_final(wait, status, ended, clock_boottime_ns()))
                return status;
        }
        ask_place(wait, now_ns);
        ask_quorum(wait, now_ns);
        wait_for_events(wait, now_ns);
    }
}

enum redlock_status wait_for_lock(struct redlock *redlock, const struct options *options, bool hold,
                                  const struct suspension *suspension, struct redlock_lock *lock,
                                  int64_t *hint_ms)
{
    int64_t now_ns = clock_boottime_ns();
    struct wait wait = {
        .redlock = redlock,
        .options = options,
        .suspension = suspension,
        .hold = hold,
        .ttl_ms = options->ttl_ms,
        .nested = nesting_has(getenv("REDLOCK_HELD"), options->name, options->slots > 0),
        .started_ns = now_ns,
        .ends_ns =
            options->wait_ms == WAIT_FOREVER ? INT64_MAX : now_ns + options->wait_ms * NS_PER_MS,
        .has_terminal = terminal_is_able(STDERR_FILENO),
    };
    schedule_questions(&wait, now_ns);
    struct redlock_event event = {.hint_ms = -1};
    /* Do not retry if the daemon is unreachable at the start: the address may be wrong. LIMIT shows
     * that the daemon exists, so retry after that. */
    enum redlock_status status = check_access(&wait);
    bool crowded = status == REDLOCK_LIMIT && !is_final(&wait, status, true, clock_boottime_ns());
    if (status == REDLOCK_OK || crowded)
        status = wait_loop(&wait, &event);
    unshow(&wait);
    if (status == REDLOCK_HELD)
        warn_nested(&wait);
    *lock = event.lock;
    if (status != REDLOCK_OK)
        lock->deadline_ns = 0;
    *hint_ms = event.hint_ms;
    if (status == REDLOCK_OK)
        end_if_signalled(suspension, redlock, lock);
    return status;
}

/* What to add to an error about the TTL; "" for other errors. The daemon's message is about one
 * request of the protocol, which the user has not written. */
static const char *ttl_advice(const struct options *options, enum redlock_status status,
                              const char *message)
{
    int64_t ttl_ms = options->ttl_ms;
    if (status != REDLOCK_REFUSED || strstr(message, "ttl-range") == NULL)
        return "";
    if (options->argv != NULL)
        return "; run extends the lock while the command runs";
    return ttl_shorten(message, &ttl_ms) ? "; to hold it for longer, use run or extend" : "";
}

int wait_report(const struct options *options, const struct redlock *redlock,
                enum redlock_status status, int64_t hint_ms)
{
    char text[MESSAGE_MAX];
    const char *message = redlock_error(redlock);
    const char *advice = ttl_advice(options, status, message);
    if (advice[0] != '\0') {
        snprintf(text, sizeof(text), "%s%s", message, advice);
        return report_status(options, status, hint_ms, text);
    }
    int code = report_failure(options, redlock, status, hint_ms);
    if (status != REDLOCK_HELD)
        return code;
    if (options->conflict_exit != CONFLICT_EXIT_DEFAULT)
        return options->conflict_exit;
    return options->wait_ms != 0 ? EXIT_WAITED : EXIT_HELD;
}
