/*
 * What systemd is told, and what it hands over, by the protocols of sd_notify(3) and
 * sd_listen_fds(3): variables of the environment, and datagrams to a unix socket.
 *
 * Not by libsystemd: its sd_notify() waits until systemd has room for the message, which would stop
 * the event loop, and opens a socket for each message, for which there may be no descriptor.
 */
#ifndef SERVER_SYSTEMD_H
#define SERVER_SYSTEMD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct systemd {
    int fd; /* -1: systemd does not want to be told */
    struct sockaddr_un where;
    socklen_t where_len;
};

/* Ready to tell systemd, if it wants to be told. False if there is no descriptor. */
bool systemd_open(struct systemd *systemd);
void systemd_close(struct systemd *systemd);

/* "READY=1", or several such lines. Never waits: false if systemd has no room for it now. */
bool systemd_notify(const struct systemd *systemd, const char *state);

/* Unless it is told WATCHDOG=1 this often, it kills the daemon; 0: it does not. */
int64_t systemd_watchdog_ns(void);

/* The sockets handed over: *first and the descriptors behind it. Returns how many, or -1 where they
 * cannot be had. Only the first call finds any; its caller closes them. */
int systemd_sockets(int *first);

#endif
