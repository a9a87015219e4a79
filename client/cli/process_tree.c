#include "client/cli/process_tree.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/report.h"

struct proc_entry {
    pid_t pid;
    pid_t parent;
    pid_t group;
    unsigned long long started; /* clock ticks after boot */
    bool ended;                 /* a zombie, or dead */
    bool descendant;            /* a descendant of this process */
};

/* All processes of the machine, sorted by PID. */
struct process_list {
    struct proc_entry *list;
    size_t count;
    size_t size;
    int failed; /* errno if a process may be missing; 0: the list is complete */
};

/* Static, so that its memory is kept between listings. It then suffices even if no more memory can
 * be allocated. */
static struct process_list processes;

enum { LIST_SIZE_MIN = 1024 };

/* Reserved descriptors: a listing closes them, since it needs one for /proc and one for a process
 * in /proc. Without them a process with no free descriptor could not list its descendants. */
static int spares[2] = {-1, -1};

/* Children that existed before process_tree_adopt(), as after `exec redlock` in a shell. They are
 * not part of the process tree. */
static pid_t *prior_children;
static size_t prior_child_count;

/* --- listing --- */

/* Parses /proc/<pid>/stat: "12 (a name) S 1 12 12 ...". The name can contain any byte. State Z
 * alone does not mean that the process has ended: if only its first thread has ended, it has state
 * Z and more than one thread. */
static bool read_process(const char *number, struct proc_entry *process)
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
    const char *name_end = strrchr(stat, ')');
    if (name_end == NULL ||
        sscanf(name_end + 1,
               " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu",
               &state, &process->parent, &process->group, &threads, &process->started) != 5)
        return false;
    process->pid = (pid_t)strtol(stat, NULL, 10);
    process->ended = (state == 'Z' || state == 'X') && threads <= 1;
    process->descendant = false;
    return true;
}

static bool make_room(size_t size)
{
    if (processes.size >= size)
        return true;
    struct proc_entry *list = reallocarray(processes.list, size, sizeof(*list));
    if (list == NULL)
        return false;
    processes.list = list;
    processes.size = size;
    return true;
}

bool process_tree_prepare(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (spares[i] < 0)
            spares[i] = eventfd(0, EFD_CLOEXEC);
    return make_room(LIST_SIZE_MIN) && spares[0] >= 0 && spares[1] >= 0;
}

static void close_spares(void)
{
    for (unsigned i = 0; i < 2; i++) {
        if (spares[i] >= 0)
            close(spares[i]);
        spares[i] = -1;
    }
}

static int by_number(const void *a, const void *b)
{
    pid_t left = ((const struct proc_entry *)a)->pid, right = ((const struct proc_entry *)b)->pid;
    return (left > right) - (left < right);
}

static struct proc_entry *find(pid_t pid)
{
    const struct proc_entry key = {.pid = pid};
    return bsearch(&key, processes.list, processes.count, sizeof(key), by_number);
}

static void list_all(DIR *proc)
{
    const struct dirent *entry;
    for (errno = 0; (entry = readdir(proc)) != NULL; errno = 0) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        if (processes.count == processes.size && !make_room(2 * processes.size)) {
            processes.failed = ENOMEM;
            return;
        }
        errno = 0;
        if (read_process(entry->d_name, &processes.list[processes.count]))
            processes.count++;
        /* Skip a process that has ended or is hidden. But if resources were lacking, the list is
         * incomplete. */
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            processes.failed = errno;
    }
    if (errno != 0)
        processes.failed = errno;
}

static bool is_prior_child(pid_t pid)
{
    for (size_t i = 0; i < prior_child_count; i++)
        if (prior_children[i] == pid)
            return true;
    return false;
}

/* True if the parent of the process is this process or a known descendant. If the parent's PID was
 * reused during the listing, the apparent parent started later than its child and is ignored. */
static bool is_descendant(const struct proc_entry *process)
{
    if (process->parent == getpid())
        return !is_prior_child(process->pid);
    const struct proc_entry *parent = find(process->parent);
    return parent != NULL && parent->descendant && parent->started <= process->started;
}

/* Marks all descendants, parents before their children. A child usually has a greater PID than its
 * parent, so two passes usually suffice. */
static void mark_descendants(void)
{
    bool found;
    do {
        found = false;
        for (size_t i = 0; i < processes.count; i++) {
            struct proc_entry *process = &processes.list[i];
            if (!process->descendant && is_descendant(process))
                process->descendant = found = true;
        }
    } while (found);
}

/* Lists all processes. If this process or the leader is missing, /proc was unmounted or remounted
 * with hidepid, and the list is incomplete. */
static void list_processes(pid_t leader)
{
    assert(processes.list != NULL);
    processes.count = 0;
    processes.failed = 0;
    close_spares();
    DIR *proc = opendir("/proc");
    if (proc != NULL) {
        list_all(proc);
        closedir(proc);
    } else {
        processes.failed = errno;
    }
    /* If a reserved descriptor cannot be opened again, the next listing may fail and says so. */
    process_tree_prepare();
    qsort(processes.list, processes.count, sizeof(*processes.list), by_number);
    if (processes.failed == 0 && (find(getpid()) == NULL || find(leader) == NULL))
        processes.failed = ENOENT;
    mark_descendants();
}

/* --- descendants --- */

/* Records the existing children. They are never waited for, so their PIDs are not reused. */
static bool record_prior_children(void)
{
    list_processes(getpid());
    for (size_t i = 0; i < processes.count; i++) {
        if (processes.list[i].parent != getpid())
            continue;
        pid_t *more = reallocarray(prior_children, prior_child_count + 1, sizeof(*prior_children));
        if (more == NULL)
            return false;
        prior_children = more;
        prior_children[prior_child_count++] = processes.list[i].pid;
    }
    errno = processes.failed;
    return processes.failed == 0;
}

bool process_tree_adopt(void)
{
    siginfo_t info;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prior_child_count = 0;
    /* Usually there are no children, and no listing is needed. */
    bool childless = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
    return childless || record_prior_children();
}

static const char *why_unread(const char *otherwise)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? strerror(errno) : otherwise;
}

const char *process_tree_why_hidden(void)
{
    static const char no_proc[] = "it is not mounted, or belongs to another PID namespace";
    struct proc_entry self, first;
    errno = 0;
    if (!read_process("self", &self))
        return why_unread(no_proc);
    /* The /proc of another PID namespace shows other PIDs. */
    if (self.pid != getpid() || self.parent != getppid())
        return no_proc;
    /* PID 1 always exists. */
    if (!read_process("1", &first))
        return why_unread("it is mounted with hidepid, which hides processes of other users; join "
                          "the group that its mount option gid names");
    return NULL;
}

/* Asks the kernel, not /proc. Orphaned descendants become children of this subreaper. So if it has
 * no living child, no descendant lives. With WSTOPPED alone, waitid(2) ignores zombies. */
static bool has_living_child(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

bool process_tree_is_empty(void)
{
    return prior_child_count == 0 && !has_living_child();
}

/* Reaps the process if it has ended. Returns false if it was not reaped: it is the leader, not a
 * child of this process, a prior child, or has not ended. */
static bool reap(const struct proc_entry *process, pid_t leader)
{
    return process->parent == getpid() && process->descendant && process->pid != leader &&
           waitpid(process->pid, NULL, WNOHANG) > 0;
}

bool process_tree_group_lives(pid_t leader)
{
    bool lives = false;
    bool child_seen = false;
    if (process_tree_is_empty())
        return false;
    list_processes(leader);
    for (size_t i = 0; i < processes.count; i++) {
        const struct proc_entry *process = &processes.list[i];
        bool zombie_leader = process->pid == leader && process->ended;
        child_seen = child_seen || (process->parent == getpid() && !zombie_leader);
        bool reaped = process->ended && reap(process, leader);
        /* A reaped process may have left a child that is not in this listing. So a reaped member of
         * the group counts as living, which causes another listing. A reaped process outside of the
         * group does not count: a background process that has left the group may start and leave
         * new processes all the time, and the group would then seem to live for as long. */
        lives = lives || (process->group == leader && (reaped || !process->ended));
    }
    /* The kernel has reported a living child: if /proc shows none, it hides processes. */
    return lives || !child_seen || processes.failed != 0;
}

/* --- killing --- */

/* The processes that remain after a pass of kill_all(), for the message if killing takes long. */
struct remaining {
    uint64_t hash;    /* of the PIDs, to notice a change */
    pid_t first;      /* first remaining process; 0: none is visible */
    bool forbidden;   /* this process is not allowed to kill the first one */
    int64_t stuck_ms; /* how long nothing has changed, or the first one could not be killed */
    bool reported;
};

/* Kills a descendant that is not a child. The process may have ended already, and its PID may be in
 * use again. So this function opens a pidfd, checks the start time, and kills through the pidfd. If
 * no pidfd can be opened, a later pass kills the process, which becomes a child of this one once
 * its own parent has ended. */
static int kill_descendant(const struct proc_entry *process)
{
    char number[32];
    struct proc_entry now;
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (fd < 0)
        return 0;
    snprintf(number, sizeof(number), "%d", (int)process->pid);
    bool same = read_process(number, &now) && now.started == process->started;
    int error = same && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) != 0 ? errno : 0;
    close(fd);
    return error;
}

static int kill_one(const struct proc_entry *process)
{
    if (process->parent != getpid())
        return kill_descendant(process);
    return kill(process->pid, SIGKILL) != 0 ? errno : 0;
}

static void note_living(struct remaining *remaining, const struct proc_entry *process, int error)
{
    remaining->hash = remaining->hash * 31 + (uint64_t)process->pid;
    if (remaining->first != 0 && (remaining->forbidden || error != EPERM))
        return;
    remaining->first = process->pid;
    remaining->forbidden = error == EPERM;
}

/* Makes one pass: kills all descendants and reaps those that have ended. Returns whether any may be
 * left. A process cannot fork after it was killed. If it forked earlier in this pass, the next pass
 * finds the child. */
static bool kill_all(pid_t leader, struct remaining *remaining)
{
    bool left = false;
    remaining->hash = 0;
    remaining->first = 0;
    remaining->forbidden = false;
    list_processes(leader);
    close_spares();
    for (size_t i = 0; i < processes.count; i++) {
        const struct proc_entry *process = &processes.list[i];
        if (process->descendant && !process->ended)
            note_living(remaining, process, kill_one(process));
        else if (process->ended)
            reap(process, leader);
        /* A process that was just reaped may have left new children: another pass is needed. */
        if ((process->descendant || process->group == leader) &&
            !(process->ended && process->pid == leader))
            left = true;
    }
    process_tree_prepare();
    if (prior_child_count > 0)
        return left || processes.failed != 0;
    return has_living_child() || (left && processes.failed == 0);
}

/* Prints what process_tree_kill() waits for, because no other message explains the delay. Returns
 * false if the first remaining process has ended meanwhile. */
static bool report_remaining(const struct remaining *remaining)
{
    struct stat owner;
    char path[32], user[32] = "root";
    snprintf(path, sizeof(path), "/proc/%d", (int)remaining->first);
    if (remaining->first == 0) {
        report_message("/proc does not show the remaining processes of the command; waiting for "
                       "them to end");
    } else if (!remaining->forbidden) {
        report_message("process %d was killed and has not ended yet; waiting for it",
                       (int)remaining->first);
    } else if (stat(path, &owner) == 0) {
        /* Print only the UID: looking up the user name can block. */
        if (owner.st_uid != 0)
            snprintf(user, sizeof(user), "%ju", (uintmax_t)owner.st_uid);
        report_message("cannot kill process %d of user %s; waiting for it to end",
                       (int)remaining->first, user);
    } else {
        return false;
    }
    return true;
}

void process_tree_kill(pid_t leader)
{
    enum { PAUSE_MS = 2, LONGEST_PAUSE_MS = 64, REPORT_MS = 1000 };
    int64_t pause_ms = PAUSE_MS;
    struct remaining remaining = {0};
    assert(leader > 1);
    /* Two empty passes in a row are needed. The leader's zombie does not count, so a pass that
     * finds only the zombie is empty. But the leader may have ended during that listing and left a
     * child with a lower PID. If the listing had already passed that PID, it misses the child. */
    for (unsigned empty = 0; empty < 2;) {
        uint64_t before = remaining.hash;
        /* Kill the whole group with one call, so that no member can fork; then the others. */
        kill(-leader, SIGKILL);
        empty = kill_all(leader, &remaining) ? 0 : empty + 1;
        if (empty > 0)
            continue;
        /* Processes may take time to end, and those of other users may not be killable. Such a
         * process can fork for ever, so its new children are no progress. */
        bool changed = remaining.hash != before;
        if (changed)
            pause_ms = PAUSE_MS;
        else if (pause_ms < LONGEST_PAUSE_MS)
            pause_ms *= 2;
        bool stuck = !changed || remaining.forbidden;
        remaining.stuck_ms = stuck ? remaining.stuck_ms + pause_ms : 0;
        if (remaining.stuck_ms >= REPORT_MS && !remaining.reported)
            remaining.reported = report_remaining(&remaining);
        nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000}, NULL);
    }
}
