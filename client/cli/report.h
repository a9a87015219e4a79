/*
 * What people are told on standard error, and programs that asked for JSON on standard output.
 */
#ifndef CLIENT_CLI_REPORT_H
#define CLIENT_CLI_REPORT_H

#include <stdint.h>

#include "client/c/redlock.h"
#include "client/cli/json.h"
#include "client/cli/options.h"

/* "redlock: ...", a line on standard error; what comes from outside is already safe to print. */
__attribute__((format(printf, 1, 2))) void report_message(const char *form, ...);

/* The name of a lock for a message: as it is if it is short and does nothing to a terminal, else
 * quoted and cut. Returns buf. */
enum { REPORT_NAME = 192 };
const char *report_name(const char *name, char buf[REPORT_NAME]);

/* Standard output gets {"status":"held", and is given what follows; then comes the "}". */
struct json report_begin(const char *status);
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
