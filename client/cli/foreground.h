/*
 * The terminal that `redlock run` was started on, lent to the command as a shell would: whoever has
 * it gets what is typed, ^C and ^Z included.
 */
#ifndef CLIENT_CLI_FOREGROUND_H
#define CLIENT_CLI_FOREGROUND_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct foreground {
    int fd; /* -1: there is none */
    bool lent;
    pid_t group;          /* to whom */
    struct termios modes; /* as they were before the command */
};

void foreground_open(struct foreground *terminal);
void foreground_close(struct foreground *terminal);

/* To this process group, if it is ours to lend: if our own group has it. */
void foreground_lend(struct foreground *terminal, pid_t group);

/* Back to our own group, if it was lent, and nobody else has it by now: a shell that took it from
 * us, and its next job. The modes of a command that could not put them back itself
 * are put back. */
void foreground_take_back(struct foreground *terminal, bool restore_modes);

#endif
