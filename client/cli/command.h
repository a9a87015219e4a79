/*
 * The commands of `redlock`: one row each, from which they are found, explained and called.
 */
#ifndef CLIENT_CLI_COMMAND_H
#define CLIENT_CLI_COMMAND_H

#include "client/cli/options.h"

enum operands {
    OPERANDS_NONE,
    OPERANDS_NAME,
    OPERANDS_MAYBE_NAME,
    OPERANDS_NAME_TOKEN,   /* the token may be left out */
    OPERANDS_NAME_COMMAND, /* options end at the name */
    OPERANDS_TOPIC,
};

struct command {
    const char *name;
    int (*call)(const struct options *options); /* returns what to exit with */
    const char *usage;                          /* behind its name */
    const char *text;                           /* what it does, in some words */
    enum operands operands;
    unsigned options; /* OPTION_BIT()s beside those that are for every command */
    const char *more; /* lines for its help */
};

/* The last row has no name. */
extern const struct command commands[];

/* NULL: there is none of that name; the error says so, and which was probably meant. */
const struct command *command_find(const char *name, struct error *error);

int command_run(const struct options *options);  /* parent.c */
int command_lock(const struct options *options); /* lock.c, and those below */
int command_unlock(const struct options *options);
int command_extend(const struct options *options);
int command_status(const struct options *options);
int command_break(const struct options *options);
int command_ping(const struct options *options);
int command_listing(const struct options *options); /* listing.c: nodes, locks, stats, clients */

#endif
