#include "server/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first descriptor that is handed over, SD_LISTEN_FDS_START. */
enum { FIRST_SOCKET = 3 };

static const int64_t ns_per_us = 1000;

/* --- what it is told --- */

/* "/run/systemd/notify", or "@name" for an abstract address. False if it is neither. */
static bool parse_address(const char *text, struct systemd *systemd)
{
    size_t len = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof(systemd->where.sun_path))
        return false;
    systemd->where.sun_family = AF_UNIX;
    memcpy(systemd->where.sun_path, text, len);
    if (text[0] == '@')
        systemd->where.sun_path[0] = '\0';
    systemd->where_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return true;
}

bool systemd_open(struct systemd *systemd)
{
    const char *address = getenv("NOTIFY_SOCKET");
    *systemd = (struct systemd){.fd = -1};
    if (address == NULL || !parse_address(address, systemd))
        return true;
    systemd->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return systemd->fd >= 0;
}

void systemd_close(struct systemd *systemd)
{
    if (systemd->fd >= 0)
        close(systemd->fd);
    systemd->fd = -1;
}

bool systemd_notify(const struct systemd *systemd, const char *state)
{
    /* By address each time: where systemd is started anew, its socket may be another one. */
    ssize_t sent = sendto(systemd->fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL,
                          (const struct sockaddr *)&systemd->where, systemd->where_len);
    return sent >= 0;
}

/* --- what it hands over --- */

/* A number of the environment, up to `most`; -1 if it is not there, or no such number. */
static int64_t number_of(const char *variable, int64_t most)
{
    const char *text = getenv(variable);
    char *end;
    if (text == NULL || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && number <= most ? number : -1;
}

/* Variables are inherited: are these meant for us? */
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
    bool ours = is_for_us("LISTEN_PID");
    int count = (int)number_of("LISTEN_FDS", INT_MAX - FIRST_SOCKET);
    *first = FIRST_SOCKET;
    /* Not for the masters of --dev. */
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (!ours || count < 0)
        return ours ? -1 : 0;
    for (int i = 0; i < count; i++)
        if (fcntl(FIRST_SOCKET + i, F_SETFD, FD_CLOEXEC) != 0)
            return -1;
    return count;
}
