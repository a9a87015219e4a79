/*
 * Keeps systemd told about the daemon: READY, STATUS, RELOADING, STOPPING, and the watchdog.
 *
 *     STATUS=4/5 voting, 312 locks      once a second at most, and only when it has changed
 *     ...; the last reload was refused  since `systemctl reload` cannot tell
 *     WATCHDOG=1                        at half the time that systemd waits for it
 *
 * Nothing here waits for systemd. What it has no room for is dropped; READY and STATUS are told
 * again a second later. Therefore not by libsystemd: its sd_notify() waits until systemd has room,
 * which would stop the event loop, and opens a socket for each message, for which there may be no
 * descriptor.
 *
 * The watchdog is fed by a timer of the event loop and by nothing else: a loop that is stuck feeds
 * it no more, and systemd kills the daemon. What was held with HOLD runs out then, as after a
 * crash.
 */
#ifndef SERVER_NOTIFIER_H
#define SERVER_NOTIFIER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { NOTIFIER_STATUS_MAX = 96 };

struct server;

/* All zero where nobody wants to be told. */
struct notifier {
    struct server *server; /* the owner */
    int fd;                /* to systemd, and its address: sd_notify(3) */
    struct sockaddr_un where;
    socklen_t where_len;
    struct event *status;   /* once a second */
    struct event *watchdog; /* NULL: there is none */
    bool ready_due;         /* READY was not taken yet */
    char told[NOTIFIER_STATUS_MAX];
};

/* The daemon listens: say so, and go on telling. False if there is not enough memory, or no
 * descriptor. */
bool notifier_start(struct notifier *notifier, struct server *server);
void notifier_stop(struct notifier *notifier);

/* Around the reading of the configuration, whatever comes of it. */
void notifier_reloading(const struct notifier *notifier);
void notifier_reloaded(struct notifier *notifier);

/* The orderly end has begun. It goes on feeding the watchdog. */
void notifier_stopping(const struct notifier *notifier);

#endif
