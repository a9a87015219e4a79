/*
 * What the kernel reports about this process, for the metrics. Reading it never blocks.
 */
#ifndef SERVER_ADMIN_PROCESS_H
#define SERVER_ADMIN_PROCESS_H

#include <dirent.h>
#include <stdint.h>

struct process {
    DIR *descriptors; /* open while a count of descriptors is in progress */
    uint64_t counted; /* descriptors counted so far in that count */
    uint64_t open;    /* result of the last complete count */
    /* Set by process_update(). */
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    int64_t cpu_ns;
    uint64_t descriptor_limit;
};

void process_init(struct process *process);
void process_deinit(struct process *process);

/* Continue the count with at most COUNTED_AT_ONCE (1024) descriptors, so that the event loop is not
 * delayed. The next call continues where this one has stopped. */
void process_tick(struct process *process);

/* Update everything but the descriptors. A value that cannot be read keeps its old value. */
void process_update(struct process *process);

#endif
