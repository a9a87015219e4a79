/*
 * A clock that advances only while the machine lets this test run: a thread that always wants a
 * processor, and the processor time that it was given.
 *
 * On an idle machine it keeps pace with real time. Where other programs want the processors too, it
 * falls behind as the programs under test do, and it stands still while a hypervisor runs another
 * guest. A claim "done within a second" is checked by this clock: a program that waits in vain
 * fails it, and a machine that is too busy does not.
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
