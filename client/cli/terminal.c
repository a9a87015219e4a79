#include "client/cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/cli/signals.h"

bool terminal_is_able(int fd)
{
    const char *kind = getenv("TERM");
    return isatty(fd) && kind != NULL && kind[0] != '\0' && strcmp(kind, "dumb") != 0;
}

/* Whether this process is in the foreground group now. If it is not, a shell may be showing its
 * prompt on the terminal. */
static bool is_ours(int fd)
{
    return tcgetpgrp(fd) == getpgrp();
}

bool terminal_takes_output(int fd)
{
    struct pollfd output = {.fd = fd, .events = POLLOUT};
    return is_ours(fd) && poll(&output, 1, 0) == 1 && (output.revents & POLLOUT) != 0;
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

void foreground_open(struct foreground *terminal)
{
    terminal->lent = terminal->modes_known = false;
    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

void foreground_close(struct foreground *terminal)
{
    if (terminal->fd >= 0)
        close(terminal->fd);
    terminal->fd = -1;
}

/* Blocks SIGTTOU, which would stop a background process that changes the foreground group. */
static bool set_group(const struct foreground *terminal, pid_t group)
{
    sigset_t before;
    const sigset_t output = signal_only(SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &before);
    bool set = tcsetpgrp(terminal->fd, group) == 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return set;
}

bool foreground_lend(struct foreground *terminal, pid_t group)
{
    if (terminal->fd < 0 || !is_ours(terminal->fd))
        return false;
    if (!terminal->modes_known)
        terminal->modes_known = tcgetattr(terminal->fd, &terminal->modes) == 0;
    if (!set_group(terminal, group))
        return false;
    terminal->lent = true;
    terminal->group = group;
    return true;
}

void foreground_take_back(struct foreground *terminal, bool restore_modes)
{
    if (!terminal->lent)
        return;
    terminal->lent = false;
    pid_t group = tcgetpgrp(terminal->fd);
    if (group != terminal->group && group > 0 && (kill(-group, 0) == 0 || errno != ESRCH))
        return;
    set_group(terminal, getpgrp());
    if (restore_modes && terminal->modes_known)
        tcsetattr(terminal->fd, TCSADRAIN, &terminal->modes);
}
