/*
 * A notify socket of the test's own: what the daemon tells systemd arrives here.
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
    char path[SANDBOX_FILE]; /* as NOTIFY_SOCKET has it */
    char message[NOTIFY_MESSAGE];
    const char *environment[5]; /* for the daemon; ends with NULL */
};

/* watchdog_us: a number, as text; NULL: there is no watchdog. */
void notify_open(struct notify *notify, const struct sandbox *sandbox, const char *watchdog_us);
/* The same at an abstract address, as containers have it. */
void notify_open_abstract(struct notify *notify, const struct sandbox *sandbox);
void notify_close(struct notify *notify);

/* Fill its queue, so that the kernel takes no more from anybody until something is read. */
void notify_fill(struct notify *notify);

/* The next message; the test fails if none comes. */
const char *notify_read(struct notify *notify);

/* Read until a message has this line, or one that begins so; returns the message. */
const char *notify_wait(struct notify *notify, const char *line);

/* Does none come within this time? What is in the queue already does not count. */
bool notify_is_quiet(struct notify *notify, int for_ms);

#endif
