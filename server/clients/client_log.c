#include "server/clients/client_log.h"

#include <stdint.h>

#include "server/clock.h"

static const struct {
    const char *event;
    enum config_log_level level;
} kinds[] = {
#define X(kind, event, level) [kind] = {event, level},
    CLIENT_LOG_KINDS(X)
#undef X
};

/* What the second that is over has left out. */
static void tell_left_out(struct client_log *log, enum client_log_kind kind, int64_t now_ns)
{
    uint64_t count = throttle_take(&log->throttles[kind], now_ns);
    if (count > 0)
        log_event(
            log->log, kinds[kind].level, "lines_left_out",
            LOG_FIELDS(log_text("of", kinds[kind].event), log_number("count", (int64_t)count)));
}

static void set_summary(struct client_log *log, int64_t now_ns)
{
    int64_t first_ns = INT64_MAX;
    for (unsigned kind = 0; kind < CLIENT_LOG_KIND_COUNT; kind++) {
        const struct throttle *throttle = &log->throttles[kind];
        if (throttle->left_out > 0 && throttle->until_ns < first_ns)
            first_ns = throttle->until_ns;
    }
    if (first_ns == INT64_MAX || event_pending(log->summary, EV_TIMEOUT, NULL))
        return;
    const struct timeval delay = clock_delay(first_ns - now_ns);
    event_add(log->summary, &delay);
}

static void client_log_on_summary(evutil_socket_t fd, short events, void *context)
{
    struct client_log *log = context;
    int64_t now_ns = clock_now_ns();
    (void)fd;
    (void)events;
    for (unsigned kind = 0; kind < CLIENT_LOG_KIND_COUNT; kind++)
        tell_left_out(log, kind, now_ns);
    set_summary(log, now_ns);
}

bool client_log_start(struct client_log *log, const struct log *to, struct event_base *base)
{
    *log = (struct client_log){.log = to};
    log->summary = event_new(base, -1, 0, client_log_on_summary, log);
    return log->summary != NULL;
}

void client_log_stop(struct client_log *log)
{
    if (log->summary == NULL)
        return;
    for (unsigned kind = 0; kind < CLIENT_LOG_KIND_COUNT; kind++)
        tell_left_out(log, kind, INT64_MAX);
    event_free(log->summary);
    log->summary = NULL;
}

void client_log(struct client_log *log, enum client_log_kind kind, const struct log_field *fields)
{
    int64_t now_ns = clock_now_ns();
    enum config_log_level level = kinds[kind].level;
    if (level < log->log->level)
        return;
    tell_left_out(log, kind, now_ns);
    if (level == CONFIG_LOG_DEBUG || throttle_may(&log->throttles[kind], now_ns))
        log_event(log->log, level, kinds[kind].event, fields);
    else
        set_summary(log, now_ns);
}
