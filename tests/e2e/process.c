#include "tests/e2e/process.h"

#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/waiting.h"

/* The exit status of a shell for a command that cannot be run. */
enum { CANNOT_EXEC = 127 };

/* Runs in the child. Opens the path as descriptor fd. */
static void redirect(const char *path, int fd, int flags)
{
    int file = open(path, flags | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(CANNOT_EXEC);
}

/* Runs in the child. The sockets are first moved to high descriptors, so that none overwrites
 * another on its way to 3, 4, ... */
static void pass_sockets(const struct process_plan *plan)
{
    enum { OUT_OF_THE_WAY = 64, FIRST = 3 };
    char text[16];
    int moved[8];
    for (unsigned i = 0; i < plan->socket_count && i < 8; i++)
        moved[i] = fcntl(plan->sockets[i], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    for (unsigned i = 0; i < plan->socket_count && i < 8; i++)
        if (dup2(moved[i], FIRST + (int)i) < 0)
            _exit(CANNOT_EXEC);
    snprintf(text, sizeof(text), "%u", plan->socket_count);
    setenv("LISTEN_FDS", text, 1);
    snprintf(text, sizeof(text), "%d", (int)getpid());
    setenv("LISTEN_PID", text, 1);
}

static void exec_child(const struct process_plan *plan, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The parent may have died before PDEATHSIG was set. */
    if (getppid() != parent)
        _exit(CANNOT_EXEC);
    /* The tests ignore SIGPIPE, and a caller such as nohup may ignore other signals. */
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    redirect("/dev/null", STDIN_FILENO, O_RDONLY);
    redirect(plan->errors, STDERR_FILENO, O_WRONLY | O_CREAT | O_APPEND);
    if (plan->output != NULL)
        redirect(plan->output, STDOUT_FILENO, O_WRONLY | O_CREAT | O_APPEND);
    else
        dup2(STDERR_FILENO, STDOUT_FILENO);
    if (plan->open_files != 0)
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){plan->open_files, plan->open_files});
    for (size_t i = 0; plan->environment != NULL && plan->environment[i] != NULL; i += 2)
        setenv(plan->environment[i], plan->environment[i + 1], 1);
    if (plan->socket_count > 0)
        pass_sockets(plan);
    execvp(plan->argv[0], (char *const *)plan->argv);
    dprintf(STDERR_FILENO, "%s: %s\n", plan->argv[0], strerror(errno));
    _exit(CANNOT_EXEC);
}

pid_t process_start(const struct process_plan *plan)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    /* The child makes no assertion: Check takes a mutex for each one, and another thread of the
     * parent may have held the mutex during fork(). */
    if (pid == 0)
        exec_child(plan, parent);
    ck_assert_int_ge(pid, 0);
    return pid;
}

bool process_ended(pid_t pid, int *status)
{
    pid_t ended = waitpid(pid, status, WNOHANG);
    ck_assert_int_ge(ended, 0);
    return ended == pid;
}

int process_wait(pid_t pid, const char *name)
{
    char what[128];
    int status;
    snprintf(what, sizeof(what), "the end of %s", name);
    struct waiting waiting = waiting_for(what);
    while (!process_ended(pid, &status))
        waiting_pause(&waiting);
    return status;
}

void process_stop(pid_t pid)
{
    int status;
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
}

void process_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    process_wait(pid, "a killed process");
}

/* Reads the fields of /proc/PID/stat after the name, which may contain spaces. */
static bool read_stat(pid_t pid, char *state, pid_t *parent, unsigned long *ticks)
{
    char path[64];
    char stat[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    size_t len = fread(stat, 1, sizeof(stat) - 1, file);
    fclose(file);
    stat[len] = '\0';
    const char *name_end = strrchr(stat, ')');
    if (name_end == NULL)
        return false;
    unsigned long user;
    unsigned long system;
    int got = sscanf(name_end + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", state,
                     parent, &user, &system);
    *ticks = user + system;
    return got == 4;
}

void process_wait_state(pid_t pid, char state)
{
    char what[64], found;
    pid_t parent;
    unsigned long ticks;
    snprintf(what, sizeof(what), "process %d to be in state %c", (int)pid, state);
    struct waiting waiting = waiting_for(what);
    while (!read_stat(pid, &found, &parent, &ticks) || found != state)
        waiting_pause(&waiting);
}

void process_wait_gone(pid_t pid)
{
    struct waiting waiting = waiting_for("a process to be gone");
    while (process_runs(pid))
        waiting_pause(&waiting);
}

unsigned process_children(pid_t parent, pid_t *children, unsigned max)
{
    unsigned count = 0;
    DIR *all = opendir("/proc");
    ck_assert_ptr_nonnull(all);
    struct dirent *entry;
    while (count < max && (entry = readdir(all)) != NULL) {
        char state;
        pid_t its_parent;
        unsigned long ticks;
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (read_stat(pid, &state, &its_parent, &ticks) && its_parent == parent)
            children[count++] = pid;
    }
    closedir(all);
    return count;
}

bool process_runs(pid_t pid)
{
    char state;
    pid_t parent;
    unsigned long ticks;
    return read_stat(pid, &state, &parent, &ticks) && state != 'Z' && state != 'X';
}

long process_cpu_ms(pid_t pid)
{
    char state;
    pid_t parent;
    unsigned long ticks;
    ck_assert(read_stat(pid, &state, &parent, &ticks));
    return (long)ticks * 1000 / sysconf(_SC_CLK_TCK);
}

long process_memory_kib(pid_t pid)
{
    char path[64];
    char line[128];
    long kib = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "re");
    ck_assert_ptr_nonnull(status);
    while (kib < 0 && fgets(line, sizeof(line), status) != NULL)
        sscanf(line, "VmRSS: %ld kB", &kib);
    fclose(status);
    ck_assert_int_ge(kib, 0);
    return kib;
}

unsigned process_open_files(pid_t pid)
{
    char path[64];
    unsigned count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *files = opendir(path);
    ck_assert_ptr_nonnull(files);
    for (struct dirent *entry = readdir(files); entry != NULL; entry = readdir(files))
        count += entry->d_name[0] != '.';
    closedir(files);
    return count;
}
