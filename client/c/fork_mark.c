#include "client/c/fork_mark.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* missing before glibc 2.27 */
#endif

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Some emulators accept every advice and follow none. So trust only a kernel that rejects an
 * unknown advice. */
static bool kernel_wipes(void *page)
{
    return madvise(page, page_size(), -1) != 0 && madvise(page, page_size(), MADV_WIPEONFORK) == 0;
}

/* The identity of the PID namespace; all zero if /proc is not mounted. */
static struct stat stat_namespace(void)
{
    struct stat pid_ns = {0};
    if (stat("/proc/self/ns/pid", &pid_ns) != 0)
        pid_ns = (struct stat){0};
    return pid_ns;
}

bool fork_mark_init(struct fork_mark *mark)
{
    void *page =
        mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    mark->page = page;
    mark->is_wiped = kernel_wipes(page);
    fork_mark_set(mark);
    return true;
}

void fork_mark_deinit(struct fork_mark *mark)
{
    munmap((void *)mark->page, page_size());
    mark->page = NULL;
}

void fork_mark_set(struct fork_mark *mark)
{
    *mark->page = 1;
    if (mark->is_wiped)
        return;
    struct stat pid_ns = stat_namespace();
    mark->pid = getpid();
    mark->pid_namespace_device = pid_ns.st_dev;
    mark->pid_namespace = pid_ns.st_ino;
}

bool fork_mark_is_ours(const struct fork_mark *mark)
{
    if (mark->is_wiped)
        return *mark->page == 1;
    if (mark->pid != getpid())
        return false;
    struct stat pid_ns = stat_namespace();
    return mark->pid_namespace == pid_ns.st_ino && mark->pid_namespace_device == pid_ns.st_dev;
}
