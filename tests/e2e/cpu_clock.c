#include "tests/e2e/cpu_clock.h"

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

static void *spin(void *context)
{
    struct cpu_clock *clock = context;
    while (!clock->stop)
        continue;
    return NULL;
}

void cpu_clock_start(struct cpu_clock *clock)
{
    clock->stop = false;
    ck_assert_int_eq(pthread_create(&clock->thread, NULL, spin, clock), 0);
}

int64_t cpu_clock_ms(const struct cpu_clock *clock)
{
    struct timespec used;
    clockid_t id;
    ck_assert_int_eq(pthread_getcpuclockid(clock->thread, &id), 0);
    ck_assert_int_eq(clock_gettime(id, &used), 0);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

void cpu_clock_stop(struct cpu_clock *clock)
{
    clock->stop = true;
    ck_assert_int_eq(pthread_join(clock->thread, NULL), 0);
}
