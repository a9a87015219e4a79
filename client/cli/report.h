/*
 * What people are told on standard error, and programs that asked for JSON on standard output.
 */
#ifndef CLIENT_CLI_REPORT_H
#define CLIENT_CLI_REPORT_H

#include <stdint.h>

#include "client/c/redlock.h"
#include "client/cli/json.h"
#include "client/cli/options.h"

/* What `redlock` exits with: as flock(1), timeout(1) and the shell have it where they have anything
 * like it, and the rest out of the way of what commands exit with. */
enum exit_code {
    EXIT_DONE = 0,         /* `run`: whatever the command exits with */
    EXIT_HELD = 1,         /* by somebody else; unlock, extend: the token does not hold it */
    EXIT_LOST = 122,       /* run: the lock was lost meanwhile, and the command was stopped */
    EXIT_NOQUORUM = 123,   /* too few masters could vote, or too late */
    EXIT_WAITED = 124,     /* the wait is over, and somebody else still holds it */
    EXIT_FAILED = 125,     /* redlock itself failed: usage, no daemon, a limit, denied */
    EXIT_CANNOT_RUN = 126, /* run: COMMAND cannot be executed */
    EXIT_NOT_FOUND = 127,  /* run: COMMAND was not found */
    EXIT_SIGNAL = 128,     /* run: and n more: COMMAND was ended by signal n */
};

/* "redlock: ...", a line on standard error; what comes from outside is already safe to print. */
__attribute__((format(printf, 1, 2))) void report_message(const char *form, ...);

/* The name of a lock for a message: as it is if it is short and does nothing to a terminal, else
 * quoted and cut. Returns buf. */
enum { REPORT_NAME = 192 };
const char *report_name(const char *name, char buf[REPORT_NAME]);

/* Standard output gets {"status":"held","resource":"NAME", the latter where there is a NAME, and is
 * given what follows; then comes the "}". */
struct json report_begin(const struct options *options, enum redlock_status status);
void report_end(struct json *json);

/* These return what to exit with. hint_ms is only looked at with REDLOCK_HELD. */

/* The last request of this handle failed so. */
int report_failure(const struct options *options, const struct redlock *redlock,
                   enum redlock_status status, int64_t hint_ms);

/* The same in other words than those of the library. */
int report_status(const struct options *options, enum redlock_status status, int64_t hint_ms,
                  const char *message);

/* redlock was called wrongly: a hint follows at what would be right. */
int report_wrong(const struct options *options, const char *what);

#endif
