#include "tests/e2e/clock.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void clock_open(struct clock_file *clock, const struct sandbox *sandbox, const char *name)
{
    const char *shim = getenv("CLOCK_SHIM");
    char file[32];
    snprintf(file, sizeof(file), "%s.clock", name);
    sandbox_path(sandbox, file, clock->path);
    if (access(clock->path, F_OK) != 0)
        clock_set(clock, 0);
    /* A daemon built with ASan refuses other libraries that are loaded before ASan, unless told
     * otherwise. */
    const char *environment[] = {"CLOCK_OFFSET_FILE",
                                 clock->path,
                                 "LD_PRELOAD",
                                 shim != NULL ? shim : "build/tests/shim/clock.so",
                                 "ASAN_OPTIONS",
                                 "verify_asan_link_order=0",
                                 NULL};
    memcpy(clock->environment, environment, sizeof(environment));
}

void clock_set(const struct clock_file *clock, int64_t ahead_s)
{
    clock_set_ms(clock, ahead_s * 1000);
}

void clock_set_ms(const struct clock_file *clock, int64_t ahead_ms)
{
    int64_t offset_us = ahead_ms * 1000;
    int fd = open(clock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, &offset_us, sizeof(offset_us), 0), sizeof(offset_us));
    close(fd);
}
