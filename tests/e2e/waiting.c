#include "tests/e2e/waiting.h"

#include <check.h>
#include <time.h>

enum { CHECK_INTERVAL_MS = 5 };

int64_t waiting_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct waiting waiting_for(const char *what)
{
    return (struct waiting){what, waiting_clock_ms() + WAITING_DEADLINE_MS};
}

struct waiting waiting_for_release(const char *what)
{
    return (struct waiting){what, waiting_clock_ms() + WAITING_RELEASE_MS};
}

int waiting_left_ms(const struct waiting *waiting)
{
    int64_t left_ms = waiting->deadline_ms - waiting_clock_ms();
    return left_ms > 0 ? (int)left_ms : 0;
}

void waiting_pause(const struct waiting *waiting)
{
    if (waiting_left_ms(waiting) == 0)
        ck_abort_msg("waited in vain for %s", waiting->what);
    nanosleep(&(struct timespec){.tv_nsec = CHECK_INTERVAL_MS * 1000000L}, NULL);
}
