/*
 * What `redlock` exits with: as flock(1), timeout(1) and the shell have it where they have anything
 * like it, and the rest out of the way of what commands exit with.
 */
#ifndef CLIENT_CLI_EXITS_H
#define CLIENT_CLI_EXITS_H

#include "client/c/redlock.h"

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

/* EXIT_WAITED is for those to tell who have waited: this one says EXIT_HELD. */
enum exit_code exit_of(enum redlock_status status);

#endif
