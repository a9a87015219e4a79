#include "server/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "protocol/units.h"

#define US_PER_S (NS_PER_S / 1000)

static int64_t read_clock_ns(clockid_t id)
{
    struct timespec now;
    int failed = clock_gettime(id, &now);
    assert(failed == 0);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t clock_now_ns(void)
{
    return read_clock_ns(CLOCK_BOOTTIME);
}

int64_t clock_wall_ns(void)
{
    return read_clock_ns(CLOCK_REALTIME);
}

int64_t clock_monotonic_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

struct timeval clock_delay(int64_t delay_ns)
{
    int64_t us = delay_ns > 0 ? (delay_ns + 999) / 1000 : 0;
    return (struct timeval){.tv_sec = us / US_PER_S, .tv_usec = us % US_PER_S};
}

void clock_read_id(char *id, size_t size)
{
    char boot[40] = "unknown";
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    /* If the file cannot be read, use an id that no other process has. With a fixed id, daemons on
     * different hosts would use each other's clock entries. */
    if (file == NULL || fscanf(file, "%39[0-9a-f-]", boot) != 1)
        snprintf(boot, sizeof(boot), "unknown-%" PRId64, clock_now_ns());
    if (file != NULL)
        fclose(file);
    file = fopen("/proc/self/timens_offsets", "re");
    if (file != NULL) {
        int found =
            fscanf(file, "monotonic %*d %*d boottime %" SCNd64 " %" SCNd64, &seconds, &nanoseconds);
        if (found != 2)
            seconds = nanoseconds = 0;
        fclose(file);
    }
    snprintf(id, size, "%s.%" PRId64 ".%" PRId64, boot, seconds, nanoseconds);
}
