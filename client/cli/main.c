/*
 * redlock: locks by redlockd from the command line.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "client/cli/exits.h"
#include "client/cli/title.h"

enum { FUNCTIONS = 13 };

static const struct {
    const char *name;
    int (*call)(const struct options *options);
} functions[FUNCTIONS] = {
    {"run", command_run},         {"lock", command_lock},     {"unlock", command_unlock},
    {"extend", command_extend},   {"status", command_status}, {"break", command_break},
    {"locks", command_listing},   {"nodes", command_listing}, {"clients", command_listing},
    {"stats", command_listing},   {"ping", command_ping},     {"help", command_help},
    {"version", command_version},
};

static const char default_url[] = "tcp://127.0.0.1:7335";

/* Or a connection would get such a number, and be what is printed to. In a command they are closed
 * as they were; a result that nobody can get is an error, so standard output cannot be written. */
static void open_standard(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static int call(const struct options *options)
{
    size_t i = 0;
    while (i < FUNCTIONS && strcmp(functions[i].name, options->command->name) != 0)
        i++;
    assert(i < FUNCTIONS);
    return functions[i].call(options);
}

int main(int argc, char **argv)
{
    open_standard();
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
            options.url = url != NULL && url[0] != '\0' ? url : default_url;
        if (options.secret_file == NULL && secret_file != NULL && secret_file[0] != '\0')
            options.secret_file = secret_file;
        code = call(&options);
    }
    /* Whoever reads the results has to know that they are not all there. */
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        report_message("standard output: %s", strerror(errno));
        code = EXIT_FAILED;
    }
    return code;
}
