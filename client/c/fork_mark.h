/*
 * Detects a fork: a mark belongs to the process that set it, and not to a process forked from that
 * one.
 *
 * A PID cannot show this. A child in a new PID namespace can have the PID of its parent, and PIDs
 * are reused. The mark is therefore in a page that the kernel clears in every forked child
 * (MADV_WIPEONFORK, Linux 4.14). On older kernels the PID and its namespace are compared instead.
 */
#ifndef CLIENT_C_FORK_MARK_H
#define CLIENT_C_FORK_MARK_H

#include <stdbool.h>
#include <sys/types.h>

struct fork_mark {
    volatile char *page; /* first byte: 1 in the process that set the mark, 0 in a forked child */
    bool is_wiped;       /* the kernel clears the page on fork; false: compare the fields below */
    pid_t pid;
    dev_t pid_namespace_device;
    ino_t pid_namespace;
};

/* Creates and sets the mark. False: there is no memory. */
__attribute__((warn_unused_result)) bool fork_mark_init(struct fork_mark *mark);
void fork_mark_deinit(struct fork_mark *mark);

/* Makes this process the owner of the mark. */
void fork_mark_set(struct fork_mark *mark);

/* Whether this process has set the mark. */
bool fork_mark_is_ours(const struct fork_mark *mark);

#endif
