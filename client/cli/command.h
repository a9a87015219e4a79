/*
 * The commands of `redlock`: one row each, from which they are found and explained. main.c has the
 * function of each, since one of them explains all.
 */
#ifndef CLIENT_CLI_COMMAND_H
#define CLIENT_CLI_COMMAND_H

#include "client/cli/options.h"
#include "client/cli/report.h"

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
    const char *usage; /* behind its name */
    const char *text;  /* what it does, in some words */
    enum operands operands;
    unsigned options; /* OPTION_BIT()s beside those that are for every command */
    const char *more; /* lines for its help */
};

enum { COMMANDS_MAX = 16 };

/* The last row has no name. */
extern const struct command commands[];

/* NULL: there is none of that name. */
const struct command *command_find(const char *name);

/* The command that was probably meant, or NULL. */
const char *command_nearest(const char *name);

/* Each in a file of its own, or with its like; they return what to exit with. */
int command_run(const struct options *options);     /* run.c */
int command_lock(const struct options *options);    /* lock.c */
int command_unlock(const struct options *options);  /* token.c */
int command_extend(const struct options *options);  /* token.c */
int command_status(const struct options *options);  /* status.c */
int command_break(const struct options *options);   /* status.c */
int command_ping(const struct options *options);    /* status.c */
int command_listing(const struct options *options); /* listing.c: nodes, locks, stats, clients */
int command_help(const struct options *options);    /* help.c */
int command_version(const struct options *options); /* help.c */

#endif
