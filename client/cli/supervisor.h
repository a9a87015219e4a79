/*
 * The supervisor: the second process of `redlock run`, and the parent of the command. It has the
 * connection to the daemon, extends the lock, and ends the command when the lock is lost or the
 * parent (parent.c), which was started, is gone. docs/architecture.md has both in one picture.
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

/* What they tell each other, a packet each. */
enum ipc_kind {
    IPC_STARTED, /* to the parent: `value` is the process, and leads its group */
    IPC_GO,      /* to the supervisor: the terminal is the command's, it may begin */
    IPC_STOPPED, /* to the parent: by the signal `value` */
    IPC_LOST,    /* to the parent: the command was told to end */
    IPC_ENDED,   /* to the parent: nothing runs any more, and this is the exit code */
    IPC_OVER,    /* to the parent: the last, the lock is given back, or could not be */
};

struct ipc_message {
    enum ipc_kind kind;
    int value;
    bool by_signal; /* ENDED: `value` is the signal, no exit code */
    bool lost;      /* ENDED: the lock was lost before */
    char text[256]; /* LOST, OVER: what to tell the user; may be empty */
};

/* Memory of both. */
struct shared_deadline {
    /* When the command is killed unless the supervisor moves it on, CLOCK_BOOTTIME; KILL_NEVER: it
     * has ended. */
    _Atomic int64_t kill_ns;
    _Atomic bool stopped; /* the command is; by the supervisor */
    _Atomic bool halted;  /* the parent stops along with it, until it is continued; by the parent */
};

/* Far off, and something can be added to it. */
#define KILL_NEVER (INT64_MAX / 2)

enum { RELEASE_TIMEOUT_MS = 2000 };

struct supervisor_plan {
    const struct options *options;
    struct redlock *redlock;
    const struct redlock_lock *lock;
    const sigset_t *mask;      /* for the command: as redlock itself was started */
    struct sigaction on_child; /* likewise, its SIGCHLD */
    pid_t parent;
    int ipc_fd; /* the socket to it */
    struct shared_deadline *shared;
};

/* In a process of its own, all signals blocked. Ends it. */
_Noreturn void supervisor_run(const struct supervisor_plan *plan);

#endif
