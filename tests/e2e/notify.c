#include "tests/e2e/notify.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/waiting.h"

static void open_at(struct notify *notify, const char *watchdog_us)
{
    ck_assert_int_ge(notify->fd, 0);
    ck_assert_int_eq(bind(notify->fd, (struct sockaddr *)&notify->where, notify->where_len), 0);
    notify->environment[0] = "NOTIFY_SOCKET";
    notify->environment[1] = notify->path;
    notify->environment[2] = watchdog_us != NULL ? "WATCHDOG_USEC" : NULL;
    notify->environment[3] = watchdog_us;
}

void notify_close(struct notify *notify)
{
    close(notify->fd);
    unlink(notify->path);
}

static void init(struct notify *notify, const struct sandbox *sandbox)
{
    *notify = (struct notify){.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                              .where = {.sun_family = AF_UNIX}};
    sandbox_path(sandbox, "notify", notify->path);
}

void notify_open(struct notify *notify, const struct sandbox *sandbox, const char *watchdog_us)
{
    init(notify, sandbox);
    memcpy(notify->where.sun_path, notify->path, strlen(notify->path));
    notify->where_len = sizeof(notify->where);
    open_at(notify, watchdog_us);
}

void notify_open_abstract(struct notify *notify, const struct sandbox *sandbox)
{
    init(notify, sandbox);
    notify->path[0] = '@';
    memcpy(notify->where.sun_path + 1, notify->path + 1, strlen(notify->path + 1));
    notify->where_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(notify->path));
    open_at(notify, NULL);
}

void notify_fill(struct notify *notify)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    while (sendto(fd, "X=1", 3, MSG_DONTWAIT, (struct sockaddr *)&notify->where,
                  notify->where_len) == 3)
        continue;
    ck_assert_int_eq(errno, EAGAIN);
    close(fd);
}

static bool message_arrives(const struct notify *notify, int within_ms)
{
    struct pollfd ready = {.fd = notify->fd, .events = POLLIN};
    return poll(&ready, 1, within_ms) == 1;
}

const char *notify_read(struct notify *notify)
{
    struct waiting waiting = waiting_for("a message to systemd");
    ck_assert_msg(message_arrives(notify, waiting_left_ms(&waiting)),
                  "no message to systemd arrives");
    ssize_t len = recv(notify->fd, notify->message, sizeof(notify->message) - 1, 0);
    ck_assert_int_gt(len, 0);
    notify->message[len] = '\0';
    return notify->message;
}

static bool has_line(const char *message, const char *line)
{
    const char *found = strstr(message, line);
    return found != NULL && (found == message || found[-1] == '\n');
}

const char *notify_wait(struct notify *notify, const char *line)
{
    struct waiting waiting = waiting_for(line);
    while (!has_line(notify_read(notify), line))
        ck_assert_msg(waiting_left_ms(&waiting) > 0, "waited in vain for %s", line);
    return notify->message;
}

unsigned notify_count(struct notify *notify, int quiet_ms)
{
    unsigned count = 0;
    for (; message_arrives(notify, quiet_ms); count++)
        notify_read(notify);
    return count;
}

bool notify_is_quiet(struct notify *notify, int for_ms)
{
    while (message_arrives(notify, 0))
        notify_read(notify);
    return !message_arrives(notify, for_ms);
}
