/*
 * The terminal: its capabilities and its foreground process group. `redlock run` makes the command
 * the foreground group of its terminal, as a shell would: the foreground group gets the input,
 * including ^C and ^Z.
 */
#ifndef CLIENT_CLI_TERMINAL_H
#define CLIENT_CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

/* Whether the descriptor is a terminal that, according to $TERM, interprets escape sequences. */
bool terminal_is_able(int fd);

/* Whether a short output would not block: this process is in the foreground group, and ^S has not
 * stopped the output. */
bool terminal_takes_output(int fd);

/* Whether to use colours and bold: the terminal is able and $NO_COLOR is not set. */
bool terminal_has_colours(int fd);

/* Width in columns; 80 if it is not known. */
int terminal_columns(int fd);

struct foreground {
    int fd; /* -1: no terminal */
    bool lent;
    pid_t group; /* the process group that the terminal is lent to */
    bool modes_known;
    struct termios modes; /* terminal modes before it was lent for the first time */
};

void foreground_open(struct foreground *terminal);
void foreground_close(struct foreground *terminal);

/* Makes this process group the foreground, if the caller's own group is the foreground now. Returns
 * whether it did. */
bool foreground_lend(struct foreground *terminal, pid_t group);

/* Makes the caller's own group the foreground again, if the terminal was lent and no third group,
 * such as a shell or its next job, has it now. restore_modes: also restores the terminal modes,
 * since a command that was killed could not restore them. */
void foreground_take_back(struct foreground *terminal, bool restore_modes);

#endif
