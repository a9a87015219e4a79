/*
 * Child processes of a test. They cannot outlive the test. Waiting for their end has a deadline.
 */
#ifndef TESTS_E2E_PROCESS_H
#define TESTS_E2E_PROCESS_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* True for a build with ASan. ASan keeps freed memory, so tests cannot check memory limits. */
#ifdef __SANITIZE_ADDRESS__
static const bool process_is_sanitized = true;
#else
static const bool process_is_sanitized = false;
#endif

struct process_plan {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    const char *output;      /* file for standard output; NULL: same as errors */
    const char *errors;      /* file for standard error; both files are appended to */
    /* Variables added to the inherited environment: name, value, name, value; ends with NULL. */
    const char *const *environment;
    rlim_t open_files; /* RLIMIT_NOFILE; 0: inherited */
    /* Sockets passed as systemd does: descriptors from 3, LISTEN_FDS and LISTEN_PID. */
    const int *sockets;
    unsigned socket_count;
};

/* Forks and execs. The kernel kills the child when the test dies. */
pid_t process_start(const struct process_plan *plan);

/* True if the process has ended. It is then reaped, and *status is that of waitpid(2). */
bool process_ended(pid_t pid, int *status);

/* Waits for the end of the process and returns the status of waitpid(2). The test fails at the
 * deadline; `name` is for its message. */
int process_wait(pid_t pid, const char *name);

/* Sends SIGSTOP and waits until the process is stopped. */
void process_stop(pid_t pid);

/* Waits until /proc shows the process in this state: 'T' stopped, 'S' asleep. */
void process_wait_state(pid_t pid, char state);
/* Waits until the process, which need not be a child, has ended. A zombie has ended. */
void process_wait_gone(pid_t pid);

/* Sends SIGKILL and reaps the process. */
void process_kill(pid_t pid);

/* Lists at most `max` children of a process. Returns their number. */
unsigned process_children(pid_t parent, pid_t *children, unsigned max);

/* True if the process, which need not be a child, runs. A zombie does not run. */
bool process_runs(pid_t pid);

/* Processor time used so far. */
long process_cpu_ms(pid_t pid);

/* Resident set size. */
long process_memory_kib(pid_t pid);

/* Number of open descriptors. */
unsigned process_open_files(pid_t pid);

#endif
