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

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    unsigned long long started; /* in ticks since the machine was */
    bool ended;                 /* a zombie, or about to be none */
    bool ours;                  /* a descendant */
};

/* All processes there are, by their numbers. */
struct census {
    struct process *list;
    size_t count;
    size_t size;
    int failed; /* errno, where somebody may have been left out; 0: nobody was */
};

/* Its memory is kept, so that there is some when there is none to be had. */
static struct census census;

enum { CENSUS_AT_FIRST = 1024 };

/* Descriptors that are given up for each census, for /proc and for one process: without them nobody
 * could tell whether anybody is left. */
static int spares[2] = {-1, -1};

/* Children from before, as a shell may have that became us: none of the process tree. */
static pid_t *others;
static size_t other_count;

/* --- all there are --- */

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
        sscanf(behind + 1,
               " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu",
               &state, &process->parent, &process->group, &threads, &process->started) != 5)
        return false;
    process->pid = (pid_t)strtol(stat, NULL, 10);
    process->ended = (state == 'Z' || state == 'X') && threads <= 1;
    process->ours = false;
    return true;
}

static bool make_room(size_t size)
{
    if (census.size >= size)
        return true;
    struct process *list = reallocarray(census.list, size, sizeof(*list));
    if (list == NULL)
        return false;
    census.list = list;
    census.size = size;
    return true;
}

bool process_tree_prepare(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (spares[i] < 0)
            spares[i] = eventfd(0, EFD_CLOEXEC);
    return make_room(CENSUS_AT_FIRST) && spares[0] >= 0 && spares[1] >= 0;
}

static void give_up_spares(void)
{
    for (unsigned i = 0; i < 2; i++) {
        if (spares[i] >= 0)
            close(spares[i]);
        spares[i] = -1;
    }
}

static int by_number(const void *a, const void *b)
{
    pid_t left = ((const struct process *)a)->pid, right = ((const struct process *)b)->pid;
    return (left > right) - (left < right);
}

static struct process *find(pid_t pid)
{
    const struct process key = {.pid = pid};
    return bsearch(&key, census.list, census.count, sizeof(key), by_number);
}

static void list_all(DIR *proc)
{
    const struct dirent *entry;
    for (errno = 0; (entry = readdir(proc)) != NULL; errno = 0) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        if (census.count == census.size && !make_room(2 * census.size)) {
            census.failed = ENOMEM;
            return;
        }
        errno = 0;
        if (read_process(entry->d_name, &census.list[census.count]))
            census.count++;
        /* It is gone, or none of our business; or it could not be looked at. */
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            census.failed = errno;
    }
    if (errno != 0)
        census.failed = errno;
}

static bool is_other(pid_t pid)
{
    for (size_t i = 0; i < other_count; i++)
        if (others[i] == pid)
            return true;
    return false;
}

/* It has been found to be a descendant of ours, or its parent has before. A number that was given
 * to another process while they were listed is no parent: that one started later. */
static bool is_ours(const struct process *process)
{
    if (process->parent == getpid())
        return !is_other(process->pid);
    const struct process *parent = find(process->parent);
    return parent != NULL && parent->ours && parent->started <= process->started;
}

/* Parents are marked before their children. As a rule numbers rise from parent to child, so one
 * pass does it. */
static void mark_ours(void)
{
    bool found;
    do {
        found = false;
        for (size_t i = 0; i < census.count; i++) {
            struct process *process = &census.list[i];
            if (!process->ours && is_ours(process))
                process->ours = found = true;
        }
    } while (found);
}

/* Us and the leader it has to show, or it shows no process for certain: it may have been unmounted,
 * or mounted with hidepid. */
static void take_census(pid_t leader)
{
    assert(census.list != NULL);
    census.count = 0;
    census.failed = 0;
    give_up_spares();
    DIR *proc = opendir("/proc");
    if (proc != NULL) {
        list_all(proc);
        closedir(proc);
    } else {
        census.failed = errno;
    }
    /* What cannot be had again is missing in the next census, which is not sure then. */
    process_tree_prepare();
    qsort(census.list, census.count, sizeof(*census.list), by_number);
    if (census.failed == 0 && (find(getpid()) == NULL || find(leader) == NULL))
        census.failed = ENOENT;
    mark_ours();
}

/* --- who is ours --- */

/* They are not waited for, so that no number among them becomes another's. */
static bool note_others(void)
{
    bool noted = true;
    other_count = 0;
    take_census(getpid());
    for (size_t i = 0; i < census.count && noted; i++) {
        if (census.list[i].parent != getpid())
            continue;
        pid_t *more = reallocarray(others, other_count + 1, sizeof(*others));
        noted = more != NULL;
        if (noted) {
            others = more;
            others[other_count++] = census.list[i].pid;
        }
    }
    if (census.failed != 0)
        errno = census.failed;
    return noted && census.failed == 0;
}

bool process_tree_adopt(void)
{
    siginfo_t info;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    other_count = 0;
    /* As a rule there is none. */
    bool childless = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
    return childless || note_others();
}

static const char *why_unread(const char *otherwise)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? strerror(errno) : otherwise;
}

const char *process_tree_is_hidden(void)
{
    static const char no_proc[] = "it is not mounted, or it is that of another PID namespace";
    struct process self, first;
    errno = 0;
    if (!read_process("self", &self))
        return why_unread(no_proc);
    /* That of another namespace has other numbers. */
    if (self.pid != getpid() || self.parent != getppid())
        return no_proc;
    /* Number 1 is always there. */
    if (!read_process("1", &first))
        return why_unread("it is mounted with hidepid, which hides processes of other users; its "
                          "option gid names a group that sees them");
    return NULL;
}

/* The kernel's own word, whatever /proc shows. Who lost its parent is a child of ours, so without a
 * living child nothing lives that is ours. Asked for stops alone, waitid(2) passes over those that
 * have ended. */
static bool has_living_child(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

bool process_tree_is_empty(void)
{
    return other_count == 0 && !has_living_child();
}

/* False: it is the leader, or somebody else's. */
static bool reap(const struct process *process, pid_t leader)
{
    return process->parent == getpid() && process->ours && process->pid != leader &&
           waitpid(process->pid, NULL, WNOHANG) > 0;
}

bool process_tree_group_lives(pid_t leader)
{
    bool lives = false;
    bool child_seen = false;
    if (process_tree_is_empty())
        return false;
    take_census(leader);
    for (size_t i = 0; i < census.count; i++) {
        const struct process *process = &census.list[i];
        bool remains = process->pid == leader && process->ended;
        child_seen = child_seen || (process->parent == getpid() && !remains);
        bool reaped = process->ended && reap(process, leader);
        /* Who was reaped may have left a child to us that was not there when the processes were
         * listed: neither of the two counts in this census, so that there has to be another. Not so
         * for who had left the group: a daemon may leave us children without end. */
        lives = lives || (process->group == leader && (reaped || !process->ended));
    }
    /* A child lived, so where none is shown /proc hides it. */
    return lives || !child_seen || census.failed != 0;
}

/* --- the end of all --- */

/* What is known of those that are left, to say so where it takes long. */
struct siege {
    uint64_t living;     /* tells one set of living processes from another */
    pid_t first;         /* of them; 0: none */
    bool forbidden;      /* to kill that one */
    int64_t standing_ms; /* for so long the same ones have lived */
    bool told;
};

/* Of one that is no child of ours the number may have been given away by now, so it is the process
 * that is killed and not the number. Where that cannot be, it is killed as a child of ours, when
 * its parent has ended. */
static int kill_descendant(const struct process *process)
{
    char number[32];
    struct process now;
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (fd < 0)
        return 0;
    snprintf(number, sizeof(number), "%d", (int)process->pid);
    bool same = read_process(number, &now) && now.started == process->started;
    int error = same && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) != 0 ? errno : 0;
    close(fd);
    return error;
}

static int kill_one(const struct process *process)
{
    if (process->parent != getpid())
        return kill_descendant(process);
    return kill(process->pid, SIGKILL) != 0 ? errno : 0;
}

static void note_living(struct siege *siege, const struct process *process, int error)
{
    siege->living = siege->living * 31 + (uint64_t)process->pid;
    if (siege->first != 0 && (siege->forbidden || error != EPERM))
        return;
    siege->first = process->pid;
    siege->forbidden = error == EPERM;
}

/* Kill all of them at once, reap those that have ended; is anybody left? None of them can start
 * another process once it is killed; what it started before, behind our back, is found the next
 * time. */
static bool kill_all(pid_t leader, struct siege *siege)
{
    bool left = false;
    siege->living = 0;
    siege->first = 0;
    siege->forbidden = false;
    take_census(leader);
    give_up_spares();
    for (size_t i = 0; i < census.count; i++) {
        const struct process *process = &census.list[i];
        if (process->ours && !process->ended)
            note_living(siege, process, kill_one(process));
        else if (process->ended)
            reap(process, leader);
        /* Who was just reaped may have left children to us behind our back: look again. */
        if ((process->ours || process->group == leader) &&
            !(process->ended && process->pid == leader))
            left = true;
    }
    process_tree_prepare();
    if (other_count > 0)
        return left || census.failed != 0;
    return has_living_child() || (left && census.failed == 0);
}

/* Nobody else will say why nothing happens any more. */
static void tell(const struct siege *siege)
{
    struct stat owner;
    char path[32], user[32] = "root";
    snprintf(path, sizeof(path), "/proc/%d", (int)siege->first);
    if (siege->first == 0) {
        report_message("cannot see in /proc what is left of the command; waiting for it to end");
    } else if (!siege->forbidden) {
        report_message("process %d was killed and has not ended yet; waiting for it",
                       (int)siege->first);
    } else if (stat(path, &owner) == 0) {
        /* Without the name: what looks that up may stand still as well. */
        if (owner.st_uid != 0)
            snprintf(user, sizeof(user), "%ju", (uintmax_t)owner.st_uid);
        report_message("cannot end process %d of user %s; waiting for it to end", (int)siege->first,
                       user);
    }
}

void process_tree_kill(pid_t leader)
{
    enum { PAUSE_MS = 2, LONGEST_PAUSE_MS = 64, TOLD_MS = 1000 };
    int64_t pause_ms = PAUSE_MS;
    struct siege siege = {0};
    assert(leader > 1);
    /* Twice, for the leader is not counted: what it left to us by ending during a census may have
     * been passed before that, its number being lower. */
    for (unsigned empty = 0; empty < 2;) {
        uint64_t before = siege.living;
        /* The whole group at one stroke, so that nobody forks away; then whoever has left it. */
        kill(-leader, SIGKILL);
        empty = kill_all(leader, &siege) ? 0 : empty + 1;
        if (empty > 0)
            continue;
        /* Some take their time to end, and who belongs to another user may not be killed at all. */
        if (siege.living != before) {
            pause_ms = PAUSE_MS;
            siege.standing_ms = 0;
        } else {
            pause_ms = pause_ms < LONGEST_PAUSE_MS ? 2 * pause_ms : pause_ms;
            siege.standing_ms += pause_ms;
        }
        if (siege.standing_ms >= TOLD_MS && !siege.told) {
            tell(&siege);
            siege.told = true;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000}, NULL);
    }
}
