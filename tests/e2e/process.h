/*
 * Child processes of a test: started so that they cannot outlive it, and waited for with a
 * deadline.
 */
#ifndef TESTS_E2E_PROCESS_H
#define TESTS_E2E_PROCESS_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Is this, and what it tests, a build with ASan? Then memory says little. */
#ifdef __SANITIZE_ADDRESS__
static const bool process_is_sanitized = true;
#else
static const bool process_is_sanitized = false;
#endif

struct process_plan {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    const char *output;      /* file for standard output; NULL: together with the errors */
    const char *errors;      /* file for standard error; both are appended to */
    /* Set in its environment, beside what is in ours: name, value, name, value; NULL ends it. */
    const char *const *environment;
    rlim_t open_files; /* its RLIMIT_NOFILE; 0: as ours */
    /* Handed over as systemd does it: descriptors from 3 on, LISTEN_FDS and LISTEN_PID. */
    const int *sockets;
    unsigned socket_count;
};

/* Fork and exec. The child is killed by the kernel when the test dies, however it dies. */
pid_t process_start(const struct process_plan *plan);

/* Has it ended? Then it is reaped, and *status is what waitpid(2) says. */
bool process_ended(pid_t pid, int *status);

/* Wait for its end; the test fails if it does not come. */
int process_wait(pid_t pid, const char *who);

/* SIGSTOP, and wait until it stands still. */
void process_stop(pid_t pid);

/* Wait until /proc says that it is in this state: 'T' stopped, 'S' asleep. */
void process_wait_state(pid_t pid, char state);
void process_wait_gone(pid_t pid);

/* SIGKILL and wait. */
void process_kill(pid_t pid);

/* The processes whose parent is this one: at most max of them; returns how many. */
unsigned process_children(pid_t parent, pid_t *children, unsigned max);

/* Does it still run? Also for one that is no child of ours; a zombie does not run. */
bool process_runs(pid_t pid);

/* The processor time it has used so far. */
long process_cpu_ms(pid_t pid);

/* The memory it has in use (RSS). */
long process_memory_kib(pid_t pid);

/* How many descriptors it has open. */
unsigned process_open_files(pid_t pid);

#endif
