/*
 * The connection of a command to its daemon.
 */
#ifndef CLIENT_CLI_DAEMON_H
#define CLIENT_CLI_DAEMON_H

#include "client/c/redlock.h"
#include "client/cli/options.h"

/* Creates a handle for the daemon at options->url, with the label "redlock:COMMAND:PID" and the
 * secret. The caller frees it. Exits the program on failure. */
struct redlock *daemon_open(const struct options *options);

/* False if the secret comes from a file that cannot be read a second time, such as a pipe. */
bool daemon_can_renew_secret(const struct options *options);

/* Reads the secret again. Call this before each new connection, since the secret may have been
 * rotated. If the file cannot be read, the previous secret stays. */
void daemon_renew_secret(const struct options *options, struct redlock *redlock);

#endif
