#include "server/notifier.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/units.h"
#include "server/admin/status.h"
#include "server/clock.h"
#include "server/server.h"
#include "server/systemd.h"

/* Read the address of systemd's socket from the environment: "/run/systemd/notify", or "@name" for
 * an abstract address. False if systemd asked for no notifications. */
static bool find_systemd(struct notifier *notifier)
{
    const char *text = getenv("NOTIFY_SOCKET");
    size_t len = text != NULL ? strlen(text) : 0;
    if (len < 2 || len >= sizeof(notifier->where.sun_path) || (text[0] != '/' && text[0] != '@'))
        return false;
    notifier->where.sun_family = AF_UNIX;
    memcpy(notifier->where.sun_path, text, len);
    if (text[0] == '@')
        notifier->where.sun_path[0] = '\0';
    notifier->where_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return true;
}

/* Send a message: "READY=1" or several such lines. Never blocks: returns false if systemd has no
 * room for the message. */
static bool notify(const struct notifier *notifier, const char *state)
{
    /* Address each message: after a restart of systemd the path may be another socket. */
    ssize_t sent = sendto(notifier->fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL,
                          (const struct sockaddr *)&notifier->where, notifier->where_len);
    return sent >= 0;
}

static void format_status(const struct server *server, char buf[NOTIFIER_STATUS_MAX])
{
    struct text text = {.buf = buf, .size = NOTIFIER_STATUS_MAX - 1};
    struct status status;
    status_take(&status, server, clock_now_ns());
    status_write_short(&status, &text);
    buf[text.len] = '\0';
}

/* Send STATUS if it has changed, and READY if that is due. If systemd has no room for the message,
 * the next call sends it again. */
static void send_status(struct notifier *notifier)
{
    char status[NOTIFIER_STATUS_MAX];
    char state[2 * NOTIFIER_STATUS_MAX];
    format_status(notifier->server, status);
    if (!notifier->ready_due && strcmp(status, notifier->last_status) == 0)
        return;
    snprintf(state, sizeof(state), "%sSTATUS=%s", notifier->ready_due ? "READY=1\n" : "", status);
    if (!notify(notifier, state))
        return;
    notifier->ready_due = false;
    memcpy(notifier->last_status, status, sizeof(status));
}

static void notifier_on_status(evutil_socket_t fd, short events, void *context)
{
    struct notifier *notifier = context;
    (void)fd;
    (void)events;
    if (notifier->server->drain_until_ns == 0)
        send_status(notifier);
}

static void notifier_on_watchdog(evutil_socket_t fd, short events, void *context)
{
    const struct notifier *notifier = context;
    (void)fd;
    (void)events;
    (void)notify(notifier, "WATCHDOG=1");
}

static struct event *start_timer(struct notifier *notifier, int64_t every_ns,
                                 event_callback_fn callback)
{
    const struct timeval every = clock_delay(every_ns);
    struct event *timer = event_new(notifier->server->base, -1, EV_PERSIST, callback, notifier);
    if (timer != NULL)
        event_add(timer, &every);
    return timer;
}

bool notifier_start(struct notifier *notifier, struct server *server)
{
    int64_t watchdog_ns = systemd_watchdog_ns();
    if (!find_systemd(notifier))
        return true;
    notifier->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (notifier->fd < 0)
        return false;
    notifier->server = server;
    notifier->status = start_timer(notifier, NS_PER_S, notifier_on_status);
    if (watchdog_ns > 0)
        notifier->watchdog = start_timer(notifier, watchdog_ns / 2, notifier_on_watchdog);
    if (notifier->status == NULL || (watchdog_ns > 0 && notifier->watchdog == NULL))
        return false;
    notifier->ready_due = true;
    send_status(notifier);
    return true;
}

void notifier_stop(struct notifier *notifier)
{
    if (notifier->status != NULL)
        event_free(notifier->status);
    if (notifier->watchdog != NULL)
        event_free(notifier->watchdog);
    if (notifier->server != NULL)
        close(notifier->fd);
    *notifier = (struct notifier){0};
}

void notifier_reloading(const struct notifier *notifier)
{
    char state[64];
    if (notifier->server == NULL)
        return;
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
             clock_monotonic_ns() / 1000);
    (void)notify(notifier, state);
}

void notifier_reloaded(struct notifier *notifier)
{
    if (notifier->server != NULL)
        notifier->ready_due = !notify(notifier, "READY=1");
}

void notifier_stopping(const struct notifier *notifier)
{
    if (notifier->server != NULL)
        (void)notify(notifier, "STOPPING=1\nSTATUS=stopping");
}
