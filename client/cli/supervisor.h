/*
 * The supervisor: the second process of `redlock run`. It starts the command, owns the connection
 * to the daemon and extends the lock. It ends the command if the lock is lost, or if the parent
 * (parent.c) has died. docs/design/architecture.md has a diagram of both processes.
 */
#ifndef CLIENT_CLI_SUPERVISOR_H
#define CLIENT_CLI_SUPERVISOR_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/cli/options.h"

struct redlock;
struct redlock_lock;

/* Messages between the two processes, one packet each. The supervisor never waits for the parent,
 * which may be stopped: the socket has room for all messages, since each is sent once and STOPPED
 * is sent only after the parent has taken the `stop_signal` before, or undone that stop. */
enum ipc_kind {
    IPC_STARTED, /* to the parent: `value` is the PID of the command and its process group */
    IPC_GO,      /* to the supervisor: the command has the terminal and may begin */
    IPC_STOPPED, /* to the parent: `stop_signal` has stopped the command */
    IPC_LOST,    /* to the parent: the lock is lost and the command is being ended */
    IPC_ENDED,   /* to the parent: the command has ended, with `value` */
    IPC_OVER,    /* to the parent, last: the lock was released, or the release has failed */
};

struct ipc_message {
    enum ipc_kind kind;
    int value;
    bool by_signal; /* ENDED: `value` is a signal, not an exit code */
    bool lost;      /* ENDED, OVER: the lock was lost before the command ended */
    char text[256]; /* LOST, OVER: message for the user; may be empty */
};

/* Memory that both processes share. */
struct shared_deadline {
    /* The time on CLOCK_BOOTTIME at which the command is killed, unless the supervisor sets a later
     * time before; KILL_NEVER: the command has ended. */
    _Atomic int64_t kill_ns;
    _Atomic bool stopped; /* the command is stopped; written by the supervisor */
    _Atomic bool halted;  /* the parent is stopped like the command; written by the parent */
    /* The signal that stopped the command last; 0: the parent has taken it, or undone the stop. */
    _Atomic int stop_signal;
};

/* Half of the range, so that adding a duration does not overflow. */
#define KILL_NEVER (INT64_MAX / 2)

enum { RELEASE_TIMEOUT_MS = 2000 };

/* If UNLOCK fails, the QUIT of the parent's redlock_free() may still release the lock: it needs no
 * verb. It releases the lock only on the connection on which the lock was acquired. */
#define RELEASE_UNCONFIRMED                                                                        \
    "its release was not confirmed; the lock expires after its TTL at the latest"

struct supervisor_plan {
    const struct options *options;
    struct redlock *redlock;
    const struct redlock_lock *lock;
    const sigset_t *mask;      /* signal mask of the command: that with which redlock was started */
    struct sigaction on_child; /* SIGCHLD action of the command: that of redlock at its start */
    pid_t parent;
    int ipc_fd; /* socket to the parent */
    struct shared_deadline *shared;
};

/* Runs as a forked child with all signals blocked, and exits the process. */
_Noreturn void supervisor_run(const struct supervisor_plan *plan);

#endif
