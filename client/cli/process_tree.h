/*
 * The processes that one process is answerable for: what it started, what those started, and so
 * on, whatever process group or session they have moved to. As a subreaper it becomes the parent
 * of those whose own parents end, so none gets away.
 *
 * The leader is the first of them and leads a process group. It has to be a child that its parent
 * has not waited for yet: as long as its remains are there, its number means nobody else.
 */
#ifndef CLIENT_CLI_PROCESS_TREE_H
#define CLIENT_CLI_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Keep at hand what is needed to list processes, so that there is never too little left for it; a
 * child has it, too. False: with errno, there is too little now. */
bool process_tree_prepare(void);

/* Be the parent of all descendants that lose theirs. The children there are already stay out of it,
 * but not what those leave behind when they end. False: with errno, they cannot be told. */
bool process_tree_adopt(void);

/* Why /proc does not show the processes that there will be, without which nothing of this works;
 * NULL: it does. */
const char *process_tree_is_hidden(void);

/* Does nothing live that is ours? Costs one system call, and needs no /proc. False, too, where
 * process_tree_adopt() has found children. */
bool process_tree_is_empty(void);

/* Does anybody of the leader's group live, the leader included? True also where that cannot be told
 * for now: no descriptors, no memory, /proc shows too little, or somebody ended while they were
 * counted. Looks at all processes of the machine. Children that have
 * ended are reaped on the way, all but the leader: once that has ended, waitid(2) would only ever
 * tell of its remains. */
bool process_tree_group_lives(pid_t leader);

/* Kill all of them, and return when none is left; where that takes long, standard error says why.
 * The leader, if it is a child of ours, is left to
 * be waited for; everything else is reaped. */
void process_tree_kill(pid_t leader);

#endif
