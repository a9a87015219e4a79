/*
 * What the kernel knows of this process, for the metrics. Reading it never blocks.
 */
#ifndef SERVER_ADMIN_PROCESS_H
#define SERVER_ADMIN_PROCESS_H

#include <dirent.h>
#include <stdint.h>

struct process {
    DIR *descriptors; /* being counted, some with each tick */
    uint64_t counted; /* of this count so far */
    uint64_t open;    /* of the last whole one */
    /* By process_look(). */
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    int64_t cpu_ns;
    uint64_t descriptor_limit;
};

void process_init(struct process *process);
void process_deinit(struct process *process);

/* Count on: a thousand descriptors at most, so that nobody waits for it. */
void process_tick(struct process *process);

/* All but the descriptors. What cannot be read stays as it was. */
void process_look(struct process *process);

#endif
