#include "tests/e2e/terminal.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/waiting.h"

/* The exit status of a shell for a command that cannot be run. */
enum { CANNOT_EXEC = 127 };

/* Copies the output until the last program has closed the terminal; read(2) then fails with EIO. */
static void copy(int terminal, FILE *to)
{
    struct waiting waiting = waiting_for("a program on a terminal to end");
    char part[4096];
    for (;;) {
        struct pollfd poll_fd = {.fd = terminal, .events = POLLIN};
        ck_assert_msg(poll(&poll_fd, 1, waiting_left_ms(&waiting)) == 1, "waited in vain for %s",
                      waiting.what);
        ssize_t len = read(terminal, part, sizeof(part));
        if (len <= 0)
            break;
        for (ssize_t i = 0; i < len; i++)
            if (part[i] != '\r')
                fputc(part[i], to);
    }
    ck_assert_int_eq(errno, EIO);
}

char *terminal_run(const char *const *argv, int *status)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 80};
    char *text = NULL;
    size_t len = 0;
    int terminal;
    pid_t pid = forkpty(&terminal, NULL, NULL, &size);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[0], (char *const *)argv);
        _exit(CANNOT_EXEC);
    }
    ck_assert_int_gt(pid, 0);
    FILE *to = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(to);
    copy(terminal, to);
    ck_assert_int_eq(fclose(to), 0);
    close(terminal);
    *status = process_wait(pid, "a program on a terminal");
    return text;
}
