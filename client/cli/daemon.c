#include "client/cli/daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "client/cli/report.h"

struct redlock *daemon_open(const struct options *options)
{
    char label[REDLOCK_LABEL_MAX + 1];
    struct redlock *redlock = redlock_new(options->url);
    if (redlock == NULL)
        exit(report_status(options, REDLOCK_MEMORY, -1, "no memory is left"));
    redlock_set_timeout(redlock, options->timeout_ms);
    snprintf(label, sizeof(label), "redlock:%s:%d", options->command->name, (int)getpid());
    (void)redlock_set_label(redlock, label);
    return redlock;
}
