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

/* After this delay, the second in which lines were left out has ended. */
static const struct timeval summary_delay = {.tv_sec = 1};

/* Log the number of lines left out in a second that has ended. */
static void log_left_out(struct client_log *log, enum client_log_kind kind, int64_t now_ns)
{
    uint64_t count = log_throttle_take(&log->throttles[kind], now_ns);
    if (count > 0)
        log_event(
            log->log, kinds[kind].level, "lines_left_out",
            LOG_FIELDS(log_text("of", kinds[kind].event), log_number("count", (int64_t)count)));
}

static void client_log_on_summary(evutil_socket_t fd, short events, void *context)
{
    struct client_log *log = context;
    int64_t now_ns = clock_now_ns();
    bool more = false;
    (void)fd;
    (void)events;
    for (unsigned kind = 0; kind < CLIENT_LOG_KIND_COUNT; kind++) {
        log_left_out(log, kind, now_ns);
        more = more || log->throttles[kind].left_out > 0;
    }
    if (more)
        event_add(log->summary, &summary_delay);
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
        log_left_out(log, kind, INT64_MAX);
    event_free(log->summary);
    log->summary = NULL;
}

void client_log(struct client_log *log, enum client_log_kind kind, const struct log_field *fields)
{
    int64_t now_ns = clock_now_ns();
    enum config_log_level level = kinds[kind].level;
    if (level < log->log->level)
        return;
    log_left_out(log, kind, now_ns);
    if (level == CONFIG_LOG_DEBUG || log_throttle_may(&log->throttles[kind], now_ns))
        log_event(log->log, level, kinds[kind].event, fields);
    else if (!event_pending(log->summary, EV_TIMEOUT, NULL))
        event_add(log->summary, &summary_delay);
}
