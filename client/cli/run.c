/*
 * `redlock run`.
 */
#include "client/cli/command.h"
#include "client/cli/exits.h"
#include "client/cli/report.h"

int command_run(const struct options *options)
{
    (void)options;
    report_message("run is not available yet");
    return EXIT_FAILED;
}
