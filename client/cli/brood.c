#include "client/cli/brood.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    DIR *proc; /* NULL: cannot be read */
    bool sure; /* nobody was left out */
};

void brood_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

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

static struct census begin_census(void)
{
    DIR *proc = opendir("/proc");
    return (struct census){.proc = proc, .sure = proc != NULL};
}

static void end_census(struct census *census)
{
    if (census->proc != NULL)
        closedir(census->proc);
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
            census->sure = false;
    }
    return false;
}

bool brood_is_visible(void)
{
    struct process self;
    /* That of another namespace has other numbers. */
    return read_process("self", &self) && self.pid == getpid() && self.parent == getppid();
}

bool brood_group_lives(pid_t leader)
{
    struct census census = begin_census();
    struct process process;
    bool lives = false;
    while (!lives && next_process(&census, &process))
        lives = process.group == leader && !process.ended;
    end_census(&census);
    return lives || !census.sure;
}

/* Kill the children there are now, reap those that have ended; is anybody left? A child's own
 * children become ours when it has ended, and have their turn then. */
static bool kill_children(pid_t leader)
{
    struct census census = begin_census();
    struct process process;
    bool left = false;
    while (next_process(&census, &process)) {
        bool ours = process.parent == getpid();
        if (ours && !process.ended)
            kill(process.pid, SIGKILL);
        else if (ours && process.pid != leader)
            waitpid(process.pid, NULL, WNOHANG);
        /* Who was just reaped may have left children to us behind our back: look again. */
        if ((ours || process.group == leader) && !(process.ended && process.pid == leader))
            left = true;
    }
    end_census(&census);
    return left || !census.sure;
}

void brood_kill(pid_t leader)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    assert(leader > 1);
    /* Twice, for the leader is not counted: what it left to us by ending during a census may have
     * been passed before that, its number being lower. */
    for (unsigned empty = 0; empty < 2;) {
        /* The whole group at one stroke, so that nobody forks away; then whoever has left it. */
        kill(-leader, SIGKILL);
        empty = kill_children(leader) ? 0 : empty + 1;
        if (empty == 0)
            nanosleep(&moment, NULL);
    }
}
