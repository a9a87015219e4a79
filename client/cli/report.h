/*
 * Messages on standard error, JSON results on standard output, and exit codes.
 */
#ifndef CLIENT_CLI_REPORT_H
#define CLIENT_CLI_REPORT_H

#include <stdint.h>

#include "client/c/redlock.h"
#include "client/cli/json.h"
#include "client/cli/options.h"

/* Exit codes follow flock(1), timeout(1) and the shell where these have a similar case. The others
 * are codes that commands rarely use. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_HELD = 1,         /* another client holds the lock, or the token does not hold it */
    EXIT_LOST = 122,       /* run: the lock was lost before the command ended */
    EXIT_NOQUORUM = 123,   /* too few masters could vote, or they were too late */
    EXIT_WAITED = 124,     /* another client still holds the lock after the wait */
    EXIT_FAILED = 125,     /* redlock itself failed: usage, no daemon, a limit, denied */
    EXIT_CANNOT_RUN = 126, /* run: COMMAND cannot be executed */
    EXIT_NOT_FOUND = 127,  /* run: COMMAND was not found */
    EXIT_SIGNAL = 128,     /* run: 128 + n: signal n ended COMMAND */
};

/* Writes "redlock: ..." as a line on standard error. Callers must escape text from outside. */
__attribute__((format(printf, 1, 2))) void report_message(const char *form, ...);

/* Formats a resource name for a message: unchanged if it is short and printable, otherwise quoted
 * and truncated. Returns buf. */
enum { REPORT_NAME = 192 };
const char *report_name(const char *name, char buf[REPORT_NAME]);

/* report_begin() writes {"status":"held","resource":"NAME" to standard output. Without a NAME it
 * leaves "resource" out. The caller adds members; report_end() closes the object. */
struct json report_begin(const struct options *options, enum redlock_status status);
void report_end(struct json *json);

/* The functions below return the exit code. hint_ms is the hint of redlock_acquire(): the
 * milliseconds until the lock can be free if no client releases it earlier, or -1 if that is not
 * known. It is used only with REDLOCK_HELD. */

/* Reports that the last request of this handle has failed. */
int report_failure(const struct options *options, const struct redlock *redlock,
                   enum redlock_status status, int64_t hint_ms);

/* Reports a failure with a message that is not the library's. */
int report_status(const struct options *options, enum redlock_status status, int64_t hint_ms,
                  const char *message);

/* Reports a usage error and points to the help. */
int report_wrong(const struct options *options, const char *what);

#endif
