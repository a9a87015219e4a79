/*
 * Which process is this: the one that set the mark, or one forked from it since?
 *
 * A process number does not tell. In a PID namespace of its own a child can have that of its
 * parent, and numbers are used again. So the mark is in a page that the kernel clears in a child,
 * however that was forked (MADV_WIPEONFORK, Linux 4.14). Elsewhere the process number and its
 * namespace have to do.
 */
#ifndef CLIENT_C_FORK_MARK_H
#define CLIENT_C_FORK_MARK_H

#include <stdbool.h>
#include <sys/types.h>

struct fork_mark {
    volatile char *page; /* its first byte: 1 in the process that set the mark, otherwise 0 */
    bool is_wiped;       /* the kernel clears it; false: what follows has to do */
    pid_t pid;
    dev_t pid_namespace_device;
    ino_t pid_namespace;
};

/* Set it. False: there is no memory. */
__attribute__((warn_unused_result)) bool fork_mark_init(struct fork_mark *mark);
void fork_mark_deinit(struct fork_mark *mark);

/* From now on it is that of this process. */
void fork_mark_set(struct fork_mark *mark);

/* Was it set by this process? */
bool fork_mark_is_ours(const struct fork_mark *mark);

#endif
