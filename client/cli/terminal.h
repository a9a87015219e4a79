/*
 * The terminal: what escape sequences do on it, and whose it is. `redlock run` lends the one it was
 * started on to the command as a shell would: whoever has it gets what is typed, ^C and ^Z
 * included.
 */
#ifndef CLIENT_CLI_TERMINAL_H
#define CLIENT_CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

/* This descriptor leads to one that does what escape sequences tell it, as far as $TERM says. */
bool terminal_is_able(int fd);

/* We are in its foreground at this moment; else a shell has it, and shows its prompt there. */
bool terminal_is_ours(int fd);

/* It is able, and nobody has asked for no colours and bold letters: $NO_COLOR. */
bool terminal_has_colours(int fd);

/* How wide it is; 80 where it does not say. */
int terminal_columns(int fd);

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
