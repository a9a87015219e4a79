/*
 * Reports the daemon's state to systemd: READY, STATUS, RELOADING, STOPPING, and the watchdog.
 *
 *     STATUS=4/5 voting, 312 locks      at most once a second, and only when it has changed
 *     WATCHDOG=1                        at half of systemd's interval
 *
 * STATUS also says whether the last reload was refused, because `systemctl reload` cannot report
 * that.
 *
 * The daemon does not wait for systemd. A message that does not fit into the socket is dropped;
 * READY and STATUS are sent again a second later. libsystemd's sd_notify() is not used, because it
 * blocks until systemd has room for the message. It also opens a socket for each message, for which
 * the daemon may have no free descriptor.
 *
 * Only a timer of the event loop sends WATCHDOG. If the loop is stuck, systemd kills the daemon,
 * and locks taken with HOLD expire as they do after a crash.
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

/* All zero if no service manager asked for notifications. */
struct notifier {
    struct server *server;    /* the owner */
    int fd;                   /* unconnected datagram socket; each message is sent to `where` */
    struct sockaddr_un where; /* systemd's socket, from $NOTIFY_SOCKET: see sd_notify(3) */
    socklen_t where_len;
    struct event *status;   /* once a second */
    struct event *watchdog; /* NULL if the watchdog is off */
    bool ready_due;         /* READY still has to be sent */
    char last_status[NOTIFIER_STATUS_MAX];
};

/* Send READY and start the timers. Call this after the listeners have been opened. Does nothing and
 * returns true if no service manager asked for notifications. Returns false if memory or
 * descriptors ran out. */
bool notifier_start(struct notifier *notifier, struct server *server);
void notifier_stop(struct notifier *notifier);

/* Call these before and after a reload, whether or not the reload succeeds. */
void notifier_reloading(const struct notifier *notifier);
void notifier_reloaded(struct notifier *notifier);

/* Report that the shutdown has begun. WATCHDOG is still sent until notifier_stop(). */
void notifier_stopping(const struct notifier *notifier);

#endif
