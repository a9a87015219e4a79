#include "tests/bench/usage.h"

#include <check.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

int64_t usage_cpu_ns(pid_t pid)
{
    char path[64];
    int64_t sum_ns = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    ck_assert_msg(tasks != NULL, "process %d is not there", (int)pid);
    const struct dirent *task;
    while ((task = readdir(tasks)) != NULL) {
        int64_t ns;
        char file[128];
        /* The entry ".." would count the main thread twice. */
        if (task->d_name[0] == '.')
            continue;
        snprintf(file, sizeof(file), "%s/%.20s/schedstat", path, task->d_name);
        FILE *stat = fopen(file, "re");
        if (stat == NULL)
            continue;
        if (fscanf(stat, "%" SCNd64, &ns) == 1)
            sum_ns += ns;
        fclose(stat);
    }
    closedir(tasks);
    return sum_ns;
}

int64_t usage_machine_ns(void)
{
    int64_t user, nice, system, idle, wait, irq, softirq, steal;
    FILE *stat = fopen("/proc/stat", "re");
    ck_assert_ptr_nonnull(stat);
    int read = fscanf(stat,
                      "cpu %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
                      " %" SCNd64 " %" SCNd64,
                      &user, &nice, &system, &idle, &wait, &irq, &softirq, &steal);
    fclose(stat);
    ck_assert_int_eq(read, 8);
    return (user + nice + system + irq + softirq + steal) * (1000000000 / sysconf(_SC_CLK_TCK));
}
