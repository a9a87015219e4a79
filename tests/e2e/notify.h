/*
 * A notify socket that receives what the daemon sends to systemd.
 */
#ifndef TESTS_E2E_NOTIFY_H
#define TESTS_E2E_NOTIFY_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/e2e/sandbox.h"

enum { NOTIFY_MESSAGE = 512 };

struct notify {
    int fd;
    struct sockaddr_un where;
    socklen_t where_len;
    char path[SANDBOX_FILE]; /* value of NOTIFY_SOCKET */
    char message[NOTIFY_MESSAGE];
    const char *environment[5]; /* for the daemon; ends with NULL */
};

/* Opens the socket. watchdog_us is the value of WATCHDOG_USEC; NULL: no watchdog. */
void notify_open(struct notify *notify, const struct sandbox *sandbox, const char *watchdog_us);
/* Opens the socket at an abstract address, as containers do, without a watchdog. */
void notify_open_abstract(struct notify *notify, const struct sandbox *sandbox);
void notify_close(struct notify *notify);

/* Fills the queue of the socket, so that the kernel refuses further messages until one is read. */
void notify_fill(struct notify *notify);

/* Returns the next message. The test fails if none comes. */
const char *notify_read(struct notify *notify);

/* Reads until a message has a line that begins with `line`, and returns the message. */
const char *notify_wait(struct notify *notify, const char *line);

/* Reads until no message has arrived for this time, and returns how many there were. The last one
 * is in notify->message. */
unsigned notify_count(struct notify *notify, int quiet_ms);

/* Discards the queued messages. True if no other arrives within for_ms. */
bool notify_is_quiet(struct notify *notify, int for_ms);

#endif
