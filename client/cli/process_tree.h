/*
 * All descendants of this process, whatever process group or session they have moved to. The
 * process is a subreaper: it becomes the parent of descendants whose own parents end, so that none
 * escapes.
 *
 * The leader is the first descendant, the command, and leads a process group. The caller must not
 * have waited for the leader: as long as its zombie exists, its PID is not reused.
 */
#ifndef CLIENT_CLI_PROCESS_TREE_H
#define CLIENT_CLI_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Reserves the memory and the descriptors for listing processes, so that a list can always be made
 * later. A forked child inherits them. False, with errno: there are not enough. */
bool process_tree_prepare(void);

/* Makes this process a subreaper. Children that exist already are not part of the tree. But the
 * processes that such a child leaves behind when it ends are part of the tree. False, with errno:
 * the existing children cannot be listed. */
bool process_tree_adopt(void);

/* This module needs a /proc that shows all processes. Returns why it does not show them all, or
 * NULL if it does. */
const char *process_tree_why_hidden(void);

/* True if no descendant lives. Costs one system call and needs no /proc. Always false if
 * process_tree_adopt() has found children. */
bool process_tree_is_empty(void);

/* True if a process of the leader's group lives, the leader included. Also true if that is not
 * certain: there was no descriptor or no memory, /proc shows too little, or a process ended during
 * the listing. Lists all processes of the machine. Reaps the children in the listing that have
 * ended, except the leader. (The caller cannot find them with waitid(2), which may report only the
 * leader's zombie.) */
bool process_tree_group_lives(pid_t leader);

/* Kills all descendants and returns when none is left. If that takes long, prints the reason on
 * standard error. Reaps all but the leader. If the leader is a child of the caller, the caller must
 * wait for it afterwards. */
void process_tree_kill(pid_t leader);

#endif
