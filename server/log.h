/*
 * The log: one line an event, to stderr.
 *
 *     text   2026-11-21T05:00:00.123Z info listening address=tcp://127.0.0.1:7335
 *     json   {"time":"2026-11-21T05:00:00.123Z","level":"info","event":"listening","address":"..."}
 *
 * Values may hold any bytes, whoever sent them: what is not printable ASCII is escaped, and a value
 * is cut after LOG_VALUE_MAX bytes. Tokens are never logged. errno is preserved. What clients can
 * cause in numbers goes through server/clients/client_log.h.
 *
 * Nothing waits for the log: where its reader stands still, and the pipe or socket to him is full,
 * lines are lost, and with the next one that is taken `log_lost` says how many. A terminal takes a
 * byte and then makes us wait for the rest, so there it does not help.
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
    bool priorities; /* the journal of systemd reads it: "<6>" before each line; see sd-daemon(3) */
};

/* Is this descriptor connected to the journal? */
bool log_is_journal(int fd);

/* key=value; text NULL: a number. A key of NULL ends a list of fields. */
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

/* What libevent has to say goes there from now on, and not to standard error by itself, in a form
 * of its own and waiting for whoever reads that; with NULL it goes nowhere. Strangers can cause
 * some of it, so there are THROTTLE_LINES in a second at most, and the next line tells what was
 * left out. */
void log_adopt_libevent(const struct log *log);

/* Format without writing, for tests: returns the length, at most LOG_LINE_MAX, LF included. */
size_t log_format(enum config_log_format format, int64_t wall_ns, enum config_log_level level,
                  const char *event, const struct log_field *fields, char *buf);

#endif
