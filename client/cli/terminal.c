#include "client/cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_is(int fd)
{
    return isatty(fd) == 1;
}

bool terminal_is_able(int fd)
{
    const char *kind = getenv("TERM");
    return terminal_is(fd) && kind != NULL && kind[0] != '\0' && strcmp(kind, "dumb") != 0;
}

bool terminal_is_ours(int fd)
{
    return tcgetpgrp(fd) == getpgrp();
}

bool terminal_has_colours(int fd)
{
    const char *unwanted = getenv("NO_COLOR");
    return terminal_is_able(fd) && (unwanted == NULL || unwanted[0] == '\0');
}

int terminal_columns(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}
