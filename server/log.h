/*
 * The log: one line per event, to stderr.
 *
 *     text   2026-11-21T05:00:00.123Z info listening address=tcp://127.0.0.1:7335
 *     json   {"time":"2026-11-21T05:00:00.123Z","level":"info","event":"listening","address":"..."}
 *
 * Values may hold any bytes, since clients and masters supply some of them. Bytes other than
 * printable ASCII are escaped, and a value is truncated to LOG_VALUE_MAX bytes. A lock token is
 * never logged in full. Logging does not change errno. Lines that clients can cause in large
 * numbers go through server/clients/client_log.h.
 *
 * The daemon does not wait for the log. When the pipe or socket to the log's reader is full, or the
 * disk of a log file, lines are dropped. Before the next line that fits, the event `log_lost` says
 * how many were dropped. A terminal is the exception: it accepts part of a line and then blocks the
 * daemon.
 */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/log.h"

enum { LOG_VALUE_MAX = 256, LOG_LINE_MAX = 4096 };

struct log {
    enum config_log_level level;
    enum config_log_format format;
    int fd;
    bool priorities; /* prefix lines with "<6>" for systemd's journal; see sd-daemon(3) */
};

/* Whether this descriptor is connected to the journal. */
bool log_is_journal(int fd);

/* One key=value pair. The value is a number if text is NULL. A field with key NULL ends a list. */
struct log_field {
    const char *key;
    const char *text;
    size_t len;
    int64_t number;
};

struct log_field log_text(const char *key, const char *text);
struct log_field log_bytes(const char *key, const char *bytes, size_t len);
struct log_field log_number(const char *key, int64_t number);

/* The fields of one event: LOG_FIELDS(log_text("node", name), log_number("port", 1)). */
#define LOG_FIELDS(...) ((const struct log_field[]){__VA_ARGS__, {0}})

void log_event(const struct log *log, enum config_log_level level, const char *event,
               const struct log_field *fields);

/* Route libevent's own messages to this log. By default libevent writes to stderr in its own format
 * and blocks until the reader takes the line. NULL discards the messages. Clients can cause some of
 * them, so at most LOG_THROTTLE_LINES are written per second, and the next line says how many were
 * left out. */
void log_adopt_libevent(const struct log *log);

/* Format a line without writing it, for tests. Returns the length with the LF, at most
 * LOG_LINE_MAX. */
size_t log_format(enum config_log_format format, int64_t wall_ns, enum config_log_level level,
                  const char *event, const struct log_field *fields, char *buf);

#endif
