#include "server/descriptors.h"

#include <stdint.h>
#include <sys/resource.h>

#include "config/config.h"
#include "engine/engine.h"
#include "protocol/limits.h"
#include "server/log.h"

/* Descriptors that are not clients': standard ones, the loop's own, evdns, the one for systemd, a
 * probe now and then. */
enum { OTHER_DESCRIPTORS = 16 };

/* Those of the admin listener: itself, its connections, as many that are refused in one pass of the
 * loop, one to look at the process. */
enum { ADMIN_DESCRIPTORS = 2 * LIMIT_ADMIN_CONNECTIONS + 2 };

unsigned descriptors_clients(const struct config *config, const struct log *log)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return (unsigned)config->limits.clients;
    const struct rlimit raised = {files.rlim_max, files.rlim_max};
    /* A sandbox may forbid it even where nothing is to be raised. */
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        files = raised;
    rlim_t others = OTHER_DESCRIPTORS + config->listen_count + 2 * CHANNELS * config->node_count;
    if (config->admin.host != NULL)
        others += ADMIN_DESCRIPTORS;
    rlim_t possible = files.rlim_cur > others ? files.rlim_cur - others : 1;
    if ((rlim_t)config->limits.clients <= possible)
        return (unsigned)config->limits.clients;
    log_event(log, CONFIG_LOG_WARNING, "clients_limited",
              LOG_FIELDS(log_number("configured", config->limits.clients),
                         log_number("possible", (int64_t)possible),
                         log_text("advice", "raise the limit of open files")));
    return (unsigned)possible;
}
