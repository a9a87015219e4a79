/*
 * redlock: the command-line client of redlockd.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "client/cli/report.h"
#include "client/cli/title.h"

/* Opens each closed standard descriptor on /dev/null, so that no connection gets its number. The
 * new descriptors are close-on-exec, so a program that `redlock run` starts finds them closed, as
 * redlock did. They are read-only, so printing a result to a closed standard output still fails. */
static void open_standard(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static void end(int signal)
{
    _exit(EXIT_SIGNAL + signal);
}

/* The kernel discards signals to process 1 of a container that have the default action. So handle
 * those that ask a process to end: otherwise a container that waits for a lock ends only by KILL.
 * execve(2) restores the default actions for COMMAND. */
static void end_by_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    const struct sigaction action = {.sa_handler = end};
    struct sigaction before;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
}

int main(int argc, char **argv)
{
    open_standard();
    if (getpid() == 1)
        end_by_signals();
    argv = title_take_arguments(argc, argv);
    struct options options;
    struct error error;
    int code;
    if (!options_parse(argc, argv, &options, &error)) {
        code = report_wrong(&options, error.text);
    } else {
        const char *url = getenv("REDLOCK_URL");
        const char *secret_file = getenv("REDLOCK_SECRET_FILE");
        if (options.url == NULL)
            options.url = url != NULL && url[0] != '\0' ? url : OPTIONS_DEFAULT_URL;
        if (options.secret_file == NULL && secret_file != NULL && secret_file[0] != '\0')
            options.secret_file = secret_file;
        code = options.command->call(&options);
    }
    /* A truncated result must not look like success. */
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        report_message("standard output: %s", strerror(errno));
        code = EXIT_FAILED;
    }
    return code;
}
