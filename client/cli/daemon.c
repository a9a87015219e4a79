#include "client/cli/daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "client/cli/report.h"
#include "client/cli/secret.h"

/* Without it nothing would be allowed; with a wrong file, nothing is said to the daemon. */
static void set_secret(const struct options *options, struct redlock *redlock)
{
    char secret[SECRET_SIZE];
    struct error error;
    if (options->secret_file == NULL)
        return;
    if (!secret_read(options->secret_file, secret, &error))
        exit(report_status(options, REDLOCK_INVALID, -1, error.text));
    enum redlock_status status = redlock_set_secret(redlock, secret);
    explicit_bzero(secret, sizeof(secret));
    if (status != REDLOCK_OK)
        exit(report_failure(options, redlock, status, -1));
}

void daemon_renew_secret(const struct options *options, struct redlock *redlock)
{
    char secret[SECRET_SIZE];
    if (options->secret_file == NULL)
        return;
    if (secret_read_again(options->secret_file, secret))
        (void)redlock_set_secret(redlock, secret);
    explicit_bzero(secret, sizeof(secret));
}

struct redlock *daemon_open(const struct options *options)
{
    char label[REDLOCK_LABEL_MAX + 1];
    struct redlock *redlock = redlock_new(options->url);
    if (redlock == NULL)
        exit(report_status(options, REDLOCK_MEMORY, -1, "no memory is left"));
    redlock_set_timeout(redlock, options->timeout_ms);
    set_secret(options, redlock);
    snprintf(label, sizeof(label), "redlock:%s:%d", options->command->name, (int)getpid());
    (void)redlock_set_label(redlock, label);
    return redlock;
}
