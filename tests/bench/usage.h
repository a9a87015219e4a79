/* Resource usage of processes. */
#ifndef TESTS_BENCH_USAGE_H
#define TESTS_BENCH_USAGE_H

#include <stdint.h>
#include <sys/types.h>

/* Processor time of all threads of the process, in ns. */
int64_t usage_cpu_ns(pid_t pid);

/* Processor time of the whole machine since its start, and of what its host took; to 10 ms. */
int64_t usage_machine_ns(void);

#endif
