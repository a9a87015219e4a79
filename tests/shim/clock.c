/*
 * Steps the wall clock of one process, mainly a Redis master. The library is preloaded, and adds an
 * offset to every reading of the wall clock. The test writes the offset, a 64-bit number of
 * microseconds, to the file $CLOCK_OFFSET_FILE.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Until the constructor has run, the clock has no offset. Constructors of other libraries, such as
 * those of Node, read the clock before that. */
static const volatile int64_t nothing_us;
static const volatile int64_t *offset_us = &nothing_us;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("CLOCK_OFFSET_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *memory =
        fd >= 0 ? mmap(NULL, sizeof(*offset_us), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (memory == MAP_FAILED)
        abort();
    offset_us = memory;
    close(fd);
}

static struct timespec read_clock(clockid_t id)
{
    static int (*real)(clockid_t, struct timespec *);
    struct timespec now;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    real(id, &now);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) {
        int64_t us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + *offset_us;
        now.tv_sec = us / 1000000;
        now.tv_nsec = us % 1000000 * 1000 + now.tv_nsec % 1000;
    }
    return now;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    *now = read_clock(id);
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec then = read_clock(CLOCK_REALTIME);
    (void)zone;
    now->tv_sec = then.tv_sec;
    now->tv_usec = then.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    time_t seconds = read_clock(CLOCK_REALTIME).tv_sec;
    if (now != NULL)
        *now = seconds;
    return seconds;
}
