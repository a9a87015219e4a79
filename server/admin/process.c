#include "server/admin/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "protocol/units.h"

enum { COUNTED_AT_ONCE = 1024 };

void process_init(struct process *process)
{
    *process = (struct process){0};
    process_tick(process);
}

void process_deinit(struct process *process)
{
    if (process->descriptors != NULL)
        closedir(process->descriptors);
    process->descriptors = NULL;
}

void process_tick(struct process *process)
{
    if (process->descriptors == NULL) {
        process->descriptors = opendir("/proc/self/fd");
        process->counted = 0;
    }
    if (process->descriptors == NULL)
        return;
    for (unsigned i = 0; i < COUNTED_AT_ONCE; i++) {
        const struct dirent *entry = readdir(process->descriptors);
        if (entry == NULL) {
            /* Subtract the descriptor of the directory itself. */
            process->open = process->counted > 0 ? process->counted - 1 : 0;
            closedir(process->descriptors);
            process->descriptors = NULL;
            return;
        }
        process->counted += entry->d_name[0] != '.';
    }
}

void process_update(struct process *process)
{
    struct rlimit files;
    struct timespec cpu;
    uint64_t total_pages;
    uint64_t resident_pages;
    FILE *memory = fopen("/proc/self/statm", "re");
    if (memory != NULL &&
        fscanf(memory, "%" SCNu64 " %" SCNu64, &total_pages, &resident_pages) == 2) {
        process->virtual_bytes = total_pages * (uint64_t)sysconf(_SC_PAGESIZE);
        process->resident_bytes = resident_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    }
    if (memory != NULL)
        fclose(memory);
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
        process->cpu_ns = cpu.tv_sec * NS_PER_S + cpu.tv_nsec;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        process->descriptor_limit = files.rlim_cur;
}
