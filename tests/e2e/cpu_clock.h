/*
 * A clock that advances only while the machine gives this test processor time. It runs a thread
 * that spins, and shows the processor time which that thread has used.
 *
 * On an idle machine the clock keeps pace with real time. On a busy machine it falls behind real
 * time, as the programs under test do. While a hypervisor runs another guest, the clock stands
 * still. Tests use it to check claims such as "done within a second": a program that hangs fails
 * the check, but a program that is slow only because the machine is busy passes.
 */
#ifndef TESTS_E2E_CPU_CLOCK_H
#define TESTS_E2E_CPU_CLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct cpu_clock {
    pthread_t thread;
    atomic_bool stop;
};

void cpu_clock_start(struct cpu_clock *clock);

/* Milliseconds of processor time since the start. */
int64_t cpu_clock_ms(const struct cpu_clock *clock);

void cpu_clock_stop(struct cpu_clock *clock);

#endif
