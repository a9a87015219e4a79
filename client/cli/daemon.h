/*
 * The connection that a command works with.
 */
#ifndef CLIENT_CLI_DAEMON_H
#define CLIENT_CLI_DAEMON_H

#include "client/c/redlock.h"
#include "client/cli/options.h"

/* For the daemon at options->url, which sees the connection as "redlock:COMMAND:PID". The caller
 * frees it. There is always one: without memory for it, the program ends here. */
struct redlock *daemon_open(const struct options *options);

/* Before each new connection: the secret may have been rotated since the last one. One that cannot
 * be read leaves the last. */
void daemon_renew_secret(const struct options *options, struct redlock *redlock);

#endif
