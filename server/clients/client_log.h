/*
 * Log lines that clients can cause in any number, because there is one for each lock or connection.
 * At most LOG_THROTTLE_LINES of each kind are written per second. Soon after the second ends, one
 * line says how many were left out:
 *
 *     warning lines_left_out of=hold_lost count=9980
 *
 * Lines at level debug are not limited, because the operator has asked for them.
 */
#ifndef SERVER_CLIENTS_CLIENT_LOG_H
#define SERVER_CLIENTS_CLIENT_LOG_H

#include <event2/event.h>
#include <stdbool.h>

#include "server/log.h"
#include "server/log_throttle.h"

/* X(kind, event, level) */
#define CLIENT_LOG_KINDS(X)                                                                        \
    X(CLIENT_LOG_HOLD_LOST, "hold_lost", CONFIG_LOG_WARNING)                                       \
    X(CLIENT_LOG_BROKEN, "lock_broken", CONFIG_LOG_WARNING)                                        \
    X(CLIENT_LOG_DROPPED, "client_dropped", CONFIG_LOG_INFO)                                       \
    X(CLIENT_LOG_ENDED, "client_dropped", CONFIG_LOG_DEBUG)                                        \
    X(CLIENT_LOG_REFUSED, "client_refused", CONFIG_LOG_INFO)                                       \
    X(CLIENT_LOG_NO_MEMORY, "client_refused", CONFIG_LOG_WARNING)                                  \
    X(CLIENT_LOG_TLS_FAILED, "tls_failed", CONFIG_LOG_INFO)                                        \
    X(CLIENT_LOG_AUTH_FAILED, "auth_failed", CONFIG_LOG_WARNING)                                   \
    X(CLIENT_LOG_AUTH_REPEATED, "auth_failed", CONFIG_LOG_DEBUG)                                   \
    X(CLIENT_LOG_AUTH_LIMITED, "auth_limited", CONFIG_LOG_WARNING)                                 \
    X(CLIENT_LOG_DISPLACED, "unauthenticated_limited", CONFIG_LOG_WARNING)                         \
    X(CLIENT_LOG_ACCEPT_PAUSED, "accept_paused", CONFIG_LOG_WARNING)

enum client_log_kind {
#define X(kind, event, level) kind,
    CLIENT_LOG_KINDS(X)
#undef X
        CLIENT_LOG_KIND_COUNT
};

struct client_log {
    const struct log *log; /* owned by the caller */
    struct event *summary; /* logs the counts; pending while lines have been left out */
    struct log_throttle throttles[CLIENT_LOG_KIND_COUNT];
};

/* False if there is not enough memory. */
bool client_log_start(struct client_log *log, const struct log *to, struct event_base *base);
/* Write the counts of the lines left out so far. */
void client_log_stop(struct client_log *log);

void client_log(struct client_log *log, enum client_log_kind kind, const struct log_field *fields);

#endif
