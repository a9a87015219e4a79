#include "server/notifier.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "server/admin/status.h"
#include "server/clock.h"
#include "server/server.h"

static void format_status(const struct server *server, char buf[NOTIFIER_STATUS_MAX])
{
    struct text text = {.buf = buf, .size = NOTIFIER_STATUS_MAX - 1};
    struct status status;
    status_take(&status, server, clock_now_ns());
    status_write_short(&status, &text);
    buf[text.len] = '\0';
}

/* What systemd has no room for is told by the next tick. */
static void tell_status(struct notifier *notifier)
{
    char status[NOTIFIER_STATUS_MAX];
    char state[2 * NOTIFIER_STATUS_MAX];
    format_status(notifier->server, status);
    if (!notifier->ready_due && strcmp(status, notifier->told) == 0)
        return;
    snprintf(state, sizeof(state), "%sSTATUS=%s", notifier->ready_due ? "READY=1\n" : "", status);
    if (!systemd_notify(&notifier->systemd, state))
        return;
    notifier->ready_due = false;
    memcpy(notifier->told, status, sizeof(status));
}

static void notifier_on_status(evutil_socket_t fd, short events, void *context)
{
    struct notifier *notifier = context;
    (void)fd;
    (void)events;
    if (notifier->server->drain_until_ns == 0)
        tell_status(notifier);
}

static void notifier_on_watchdog(evutil_socket_t fd, short events, void *context)
{
    const struct notifier *notifier = context;
    (void)fd;
    (void)events;
    (void)systemd_notify(&notifier->systemd, "WATCHDOG=1");
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
    if (!systemd_open(&notifier->systemd))
        return false;
    if (notifier->systemd.fd < 0)
        return true;
    notifier->server = server;
    notifier->status = start_timer(notifier, NS_PER_S, notifier_on_status);
    if (watchdog_ns > 0)
        notifier->watchdog = start_timer(notifier, watchdog_ns / 2, notifier_on_watchdog);
    if (notifier->status == NULL || (watchdog_ns > 0 && notifier->watchdog == NULL))
        return false;
    notifier->ready_due = true;
    tell_status(notifier);
    return true;
}

void notifier_stop(struct notifier *notifier)
{
    if (notifier->status != NULL)
        event_free(notifier->status);
    if (notifier->watchdog != NULL)
        event_free(notifier->watchdog);
    if (notifier->server != NULL)
        systemd_close(&notifier->systemd);
    *notifier = (struct notifier){0};
}

void notifier_reloading(const struct notifier *notifier)
{
    char state[64];
    if (notifier->server == NULL)
        return;
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
             clock_monotonic_ns() / 1000);
    (void)systemd_notify(&notifier->systemd, state);
}

void notifier_reloaded(struct notifier *notifier)
{
    if (notifier->server != NULL)
        notifier->ready_due = !systemd_notify(&notifier->systemd, "READY=1");
}

void notifier_stopping(const struct notifier *notifier)
{
    if (notifier->server != NULL)
        (void)systemd_notify(&notifier->systemd, "STOPPING=1\nSTATUS=stopping");
}
