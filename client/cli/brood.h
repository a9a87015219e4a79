/*
 * The processes that one process is answerable for: what it started, what those started, and so
 * on, whatever process group or session they have moved to. As a subreaper it becomes the parent
 * of those whose own parents end, so none gets away.
 *
 * The leader is the first of them and leads a process group. It has to be a child that its parent
 * has not waited for yet: as long as its remains are there, its number means nobody else.
 */
#ifndef CLIENT_CLI_BROOD_H
#define CLIENT_CLI_BROOD_H

#include <stdbool.h>
#include <sys/types.h>

/* Keep at hand what is needed to list processes, so that there is never too little left for it; a
 * child has it, too. False: with errno, there is too little now. */
bool brood_prepare(void);

/* Be the parent of all descendants that lose theirs. The children there are already stay out of it,
 * but not what those leave behind when they end. False: with errno, they cannot be told. */
bool brood_adopt(void);

/* Can the processes be listed? Without that (no /proc, or one of another PID namespace) nothing of
 * this works. */
bool brood_is_visible(void);

/* Does anybody of the leader's group live, the leader included? True also where that cannot be told
 * for now: no descriptors, no memory, or somebody ended while they were counted. Children that have
 * ended are reaped on the way, all but the leader: once that has ended, waitid(2) would only ever
 * tell of its remains. */
bool brood_group_lives(pid_t leader);

/* Kill all of them, and return when none is left. The leader, if it is a child of ours, is left to
 * be waited for; everything else is reaped. */
void brood_kill(pid_t leader);

#endif
