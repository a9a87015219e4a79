#include "client/cli/brood.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    bool ended; /* a zombie, or about to be none */
};

/* All processes there are. */
struct census {
    DIR *proc;  /* NULL: cannot be read */
    int failed; /* errno, where somebody may have been left out; 0: nobody was */
};

/* Descriptors that are given up for each census, for /proc and for one process: without them nobody
 * could tell whether anybody is left. */
static int spares[2] = {-1, -1};

/* Children from before, as a shell may have that became us: none of the brood. */
static pid_t *others;
static size_t other_count;

/* What /proc/<pid>/stat says: "12 (a name) S 1 12 12 ..."; the name may contain anything. A process
 * whose first thread has ended looks like a zombie, too, but for the number of its threads. */
static bool read_process(const char *number, struct process *process)
{
    char path[64], stat[512], state;
    int threads;
    snprintf(path, sizeof(path), "/proc/%.20s/stat", number);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t len = fread(stat, 1, sizeof(stat) - 1, file);
    fclose(file);
    stat[len] = '\0';
    const char *behind = strrchr(stat, ')');
    if (behind == NULL ||
        sscanf(behind + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
               &state, &process->parent, &process->group, &threads) != 4)
        return false;
    process->pid = (pid_t)strtol(stat, NULL, 10);
    process->ended = (state == 'Z' || state == 'X') && threads <= 1;
    return true;
}

bool brood_prepare(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (spares[i] < 0)
            spares[i] = eventfd(0, EFD_CLOEXEC);
    return spares[0] >= 0 && spares[1] >= 0;
}

static void give_up_spares(void)
{
    for (unsigned i = 0; i < 2; i++) {
        if (spares[i] >= 0)
            close(spares[i]);
        spares[i] = -1;
    }
}

static struct census begin_census(void)
{
    give_up_spares();
    DIR *proc = opendir("/proc");
    return (struct census){.proc = proc, .failed = proc != NULL ? 0 : errno};
}

static void end_census(struct census *census)
{
    if (census->proc != NULL)
        closedir(census->proc);
    /* What cannot be had again is missing in the next census, which is not sure then. */
    brood_prepare();
}

/* The next process there is; false at the end. */
static bool next_process(struct census *census, struct process *process)
{
    const struct dirent *entry;
    while (census->proc != NULL && (entry = readdir(census->proc)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        errno = 0;
        if (read_process(entry->d_name, process))
            return true;
        /* It is gone, or none of our business; or it could not be looked at. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            census->failed = errno;
    }
    return false;
}

static bool is_other(pid_t pid)
{
    for (size_t i = 0; i < other_count; i++)
        if (others[i] == pid)
            return true;
    return false;
}

/* They are not waited for, so that no number among them becomes another's. */
static bool note_others(void)
{
    struct census census = begin_census();
    struct process process;
    bool noted = true;
    while (noted && next_process(&census, &process)) {
        if (process.parent != getpid())
            continue;
        pid_t *more = reallocarray(others, other_count + 1, sizeof(*others));
        noted = more != NULL;
        if (noted) {
            others = more;
            others[other_count++] = process.pid;
        }
    }
    end_census(&census);
    if (census.failed != 0)
        errno = census.failed;
    return noted && census.failed == 0;
}

bool brood_adopt(void)
{
    siginfo_t info;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    other_count = 0;
    /* As a rule there is none. */
    bool childless = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
    return childless || note_others();
}

bool brood_is_visible(void)
{
    struct process self;
    give_up_spares();
    bool read = read_process("self", &self);
    brood_prepare();
    /* That of another namespace has other numbers. */
    return read && self.pid == getpid() && self.parent == getppid();
}

static bool is_ours(const struct process *process)
{
    return process->parent == getpid() && !is_other(process->pid);
}

/* False: it is the leader, or somebody else's. */
static bool reap(const struct process *process, pid_t leader)
{
    return process->pid != leader && waitpid(process->pid, NULL, WNOHANG) > 0;
}

bool brood_group_lives(pid_t leader)
{
    struct census census = begin_census();
    struct process process;
    bool lives = false;
    while (next_process(&census, &process)) {
        bool reaped = process.ended && is_ours(&process) && reap(&process, leader);
        /* Who was reaped may have left a child to us that was not there when the processes were
         * listed: neither of the two counts in this census, so that there has to be another. Not so
         * for who had left the group: a daemon may leave us children without end. */
        lives = lives || (process.group == leader && (reaped || !process.ended));
    }
    end_census(&census);
    return lives || census.failed != 0;
}

/* Kill the children there are now, reap those that have ended; is anybody left? A child's own
 * children become ours when it has ended, and have their turn then. */
static bool kill_children(pid_t leader)
{
    struct census census = begin_census();
    struct process process;
    bool left = false;
    while (next_process(&census, &process)) {
        bool ours = is_ours(&process);
        if (ours && !process.ended)
            kill(process.pid, SIGKILL);
        else if (ours)
            reap(&process, leader);
        /* Who was just reaped may have left children to us behind our back: look again. */
        if ((ours || process.group == leader) && !(process.ended && process.pid == leader))
            left = true;
    }
    end_census(&census);
    return left || census.failed != 0;
}

void brood_kill(pid_t leader)
{
    enum { LONGEST_PAUSE_NS = 64000000 };
    struct timespec pause = {.tv_nsec = 2000000};
    assert(leader > 1);
    /* Twice, for the leader is not counted: what it left to us by ending during a census may have
     * been passed before that, its number being lower. */
    for (unsigned empty = 0; empty < 2;) {
        /* The whole group at one stroke, so that nobody forks away; then whoever has left it. */
        kill(-leader, SIGKILL);
        empty = kill_children(leader) ? 0 : empty + 1;
        if (empty > 0)
            continue;
        nanosleep(&pause, NULL);
        /* Some take their time to end, and who belongs to another user may not be killed at all. */
        if (pause.tv_nsec < LONGEST_PAUSE_NS)
            pause.tv_nsec *= 2;
    }
}
