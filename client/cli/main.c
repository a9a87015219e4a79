/*
 * redlock: locks by redlockd from the command line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/exits.h"
#include "client/cli/report.h"

static const char default_url[] = "tcp://127.0.0.1:7335";

int main(int argc, char **argv)
{
    struct options options;
    struct error error;
    int code;
    if (!options_parse(argc, argv, &options, &error)) {
        code = report_wrong(&options, error.text);
    } else {
        const char *url = getenv("REDLOCK_URL");
        if (options.url == NULL)
            options.url = url != NULL && url[0] != '\0' ? url : default_url;
        code = options.command->function(&options);
    }
    /* Whoever reads the results has to know that they are not all there. */
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        report_message("standard output: %s", strerror(errno));
        code = EXIT_FAILED;
    }
    return code;
}
