/*
 * The table of the `redlock` commands, for lookup, help and dispatch.
 */
#ifndef CLIENT_CLI_COMMAND_H
#define CLIENT_CLI_COMMAND_H

#include "client/cli/options.h"

enum operands {
    OPERANDS_NONE,
    OPERANDS_NAME,
    OPERANDS_MAYBE_NAME,
    OPERANDS_NAME_TOKEN,   /* TOKEN is optional */
    OPERANDS_NAME_COMMAND, /* options end at the name */
    OPERANDS_TOPIC,
};

struct command {
    const char *name;
    int (*call)(const struct options *options); /* returns the exit code */
    const char *usage;                          /* usage line after the name */
    const char *text;                           /* one-line description */
    enum operands operands;
    unsigned options; /* OPTION_BIT()s in addition to OPTIONS_EVERYWHERE */
    const char *more; /* further lines of the help for this command */
};

/* The last row has no name. */
extern const struct command commands[];

/* NULL: unknown command; the error says so and suggests a similar name. */
const struct command *command_find(const char *name, struct error *error);

int command_run(const struct options *options);  /* parent.c */
int command_lock(const struct options *options); /* lock.c, like the next five */
int command_unlock(const struct options *options);
int command_extend(const struct options *options);
int command_status(const struct options *options);
int command_break(const struct options *options);
int command_ping(const struct options *options);
int command_listing(const struct options *options); /* listing.c: nodes, locks, stats, clients */

#endif
