/*
 * All descendants of this process, whatever process group or session they have moved to. The
 * process is a subreaper: it becomes the parent of descendants whose own parents end, so that none
 * escapes.
 *
 * The leader is the first descendant, the command, and leads a process group. It must not have been
 * waited for: its zombie keeps its PID from being reused.
 */
#ifndef CLIENT_CLI_PROCESS_TREE_H
#define CLIENT_CLI_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Reserves the memory and the descriptors for listing processes, so that a list can always be made
 * later. A forked child inherits them. False, with errno: there are not enough. */
bool process_tree_prepare(void);

/* Makes this process a subreaper. Children that exist already are not part of the tree, but
 * processes that they leave behind when they end are. False, with errno: the existing children
 * cannot be listed. */
bool process_tree_adopt(void);

/* Why /proc does not show all processes, which this module needs. NULL: it shows them. */
const char *process_tree_why_hidden(void);

/* True if no descendant lives. Costs one system call and needs no /proc. Always false if
 * process_tree_adopt() has found children. */
bool process_tree_is_empty(void);

/* True if a process of the leader's group lives, the leader included. Also true if that is not
 * certain: no descriptor, no memory, /proc shows too little, or a process ended during the listing.
 * Lists all processes of the machine. Reaps children that have ended, except the leader; waitid(2)
 * cannot be used for that, because it may report only the leader's zombie. */
bool process_tree_group_lives(pid_t leader);

/* Kills all descendants and returns when none is left. If that takes long, prints the reason on
 * standard error. Reaps all but the leader, which the caller must wait for if it is a child. */
void process_tree_kill(pid_t leader);

#endif
