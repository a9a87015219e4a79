#include "server/systemd.h"

#ifdef HAVE_SYSTEMD

#include <stdlib.h>
#include <systemd/sd-daemon.h>

bool systemd_listens(void)
{
    return getenv("NOTIFY_SOCKET") != NULL;
}

void systemd_notify(const char *state)
{
    sd_notify(0, state);
}

int64_t systemd_watchdog_ns(void)
{
    uint64_t interval_us;
    if (sd_watchdog_enabled(0, &interval_us) <= 0 || interval_us > INT64_MAX / 1000)
        return 0;
    return (int64_t)interval_us * 1000;
}

int systemd_sockets(int *first)
{
    *first = SD_LISTEN_FDS_START;
    /* Taken out of the environment: they are not for the masters of --dev. */
    int count = sd_listen_fds(1);
    return count >= 0 ? count : -1;
}

#else

bool systemd_listens(void)
{
    return false;
}

void systemd_notify(const char *state)
{
    (void)state;
}

int64_t systemd_watchdog_ns(void)
{
    return 0;
}

int systemd_sockets(int *first)
{
    *first = -1;
    return 0;
}

#endif
