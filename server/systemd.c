#include "server/systemd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/text.h"

/* SD_LISTEN_FDS_START of sd_listen_fds(3). */
enum { FIRST_SOCKET = 3 };

static const int64_t ns_per_us = 1000;

/* The number in an environment variable, at most `most`; -1 if it is missing or invalid. */
static int64_t number_of(const char *variable, int64_t most)
{
    const char *text = getenv(variable);
    uint64_t number;
    size_t digits = text != NULL ? text_take_number(text, strlen(text), &number) : 0;
    return digits > 0 && text[digits] == '\0' && number <= (uint64_t)most ? (int64_t)number : -1;
}

/* Environment variables are inherited: check that systemd set these for this process. */
static bool is_for_us(const char *variable)
{
    return number_of(variable, INT_MAX) == getpid();
}

int64_t systemd_watchdog_ns(void)
{
    int64_t interval_us = number_of("WATCHDOG_USEC", INT64_MAX / ns_per_us);
    if (interval_us <= 0 || (getenv("WATCHDOG_PID") != NULL && !is_for_us("WATCHDOG_PID")))
        return 0;
    return interval_us * ns_per_us;
}

int systemd_sockets(int *first)
{
    bool for_us = is_for_us("LISTEN_PID");
    int count = (int)number_of("LISTEN_FDS", INT_MAX - FIRST_SOCKET);
    *first = FIRST_SOCKET;
    /* The masters of --dev must not inherit these variables. */
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (!for_us || count < 0)
        return for_us ? -1 : 0;
    for (int i = 0; i < count; i++)
        if (fcntl(FIRST_SOCKET + i, F_SETFD, FD_CLOEXEC) != 0)
            return -1;
    return count;
}
