#include "server/rules.h"

#include <string.h>
#include <sys/resource.h>

#include "config/config.h"
#include "engine/round/node_set.h"
#include "protocol/limits.h"
#include "protocol/units.h"
#include "server/log.h"

struct engine_rules rules_of(const struct config *config)
{
    struct engine_rules rules = {
        .round =
            {
                .node_count = config->node_count,
                .quorum = config->node_count / 2 + 1,
                .node_timeout_ns = config->rounds.node_timeout_ns,
                .min_validity_ns = config->locks.min_validity_ns,
                .drift = {.rate_ppm = config->locks.clock_drift_ppm,
                          .margin_ns = config->locks.clock_drift_margin_ns},
            },
        .key_prefix = config->locks.key_prefix,
        .key_prefix_len = strlen(config->locks.key_prefix),
        .shared_names = config->locks.key_prefix[0] == '\0',
        .cluster = config->cluster,
        .max_ttl_ns = config->locks.max_ttl_ns,
        .max_hold_ns = config->locks.max_hold_ns,
        .max_extensions = config->locks.max_extensions,
        .backoff_min_ns = config->rounds.backoff_min_ns,
        .backoff_max_ns = config->rounds.backoff_max_ns,
        .waiters = (size_t)config->limits.waiters,
        .waiters_per_resource = (size_t)config->limits.waiters_per_resource,
        .fence_ttl_ns = config->locks.fence_ttl_ns,
        .fence_always = config->locks.fence == CONFIG_FENCE_ALWAYS,
    };
    for (unsigned i = 0; i < config->node_count; i++) {
        const struct config_node *node = &config->nodes[i];
        rules.node_names[i] = node->name;
        rules.durable |= node->durable ? nodes_only(i) : 0;
        rules.logins[i] =
            (struct link_login){node->username, node->password, node->address.database};
    }
    return rules;
}

/* The shortest TTL with which a lock can be granted: after clock drift and min_validity are
 * subtracted, a millisecond must remain for the round. */
static int64_t shortest_ttl_ms(const struct round_rules *rules)
{
    int64_t ttl_ms = 1;
    while (ttl_ms * NS_PER_MS - drift_of(&rules->drift, ttl_ms * NS_PER_MS) <
           rules->min_validity_ns + NS_PER_MS)
        ttl_ms++;
    return ttl_ms;
}

struct request_limits rules_request_limits(const struct engine_rules *rules)
{
    return (struct request_limits){
        .ttl_min_ms = shortest_ttl_ms(&rules->round),
        .ttl_max_ms = rules->max_ttl_ns / NS_PER_MS,
        .hold_ttl_min_ms = engine_shortest_hold_ms(rules),
        .key_prefix = rules->key_prefix,
        .key_prefix_len = rules->key_prefix_len,
    };
}

/* --- descriptors --- */

/* Descriptors not used by clients: standard ones, the event loop, evdns, systemd's socket, and an
 * occasional temporary one. */
enum { OTHER_DESCRIPTORS = 16 };

/* Descriptors of an HTTP listener: its socket, its connections, and one to read /proc. In one pass
 * of the event loop it can also accept and refuse LIMIT_HTTP_CONNECTIONS more connections, which
 * are closed only afterwards. */
enum { HTTP_DESCRIPTORS = 2 * LIMIT_HTTP_CONNECTIONS + 2 };

unsigned rules_clients(const struct config *config, const struct log *log)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return (unsigned)config->limits.clients;
    const struct rlimit raised = {files.rlim_max, files.rlim_max};
    /* A sandbox may deny this call, even if it does not change the limit. The limit in force then
     * stays. */
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        files = raised;
    rlim_t others = OTHER_DESCRIPTORS + config->listen_count + 2 * CHANNELS * config->node_count;
    /* In one pass of the event loop, new connections of all listeners can displace every handshake.
     * The displaced ones are closed only afterwards. */
    bool tls = false;
    for (size_t i = 0; i < config->listen_count; i++)
        tls = tls || config->listens[i].address.tls;
    if (tls)
        others += LIMIT_HANDSHAKES;
    if (config->admin.host != NULL)
        others += HTTP_DESCRIPTORS;
    if (config->metrics.host != NULL)
        others += HTTP_DESCRIPTORS;
    rlim_t possible = files.rlim_cur > others ? files.rlim_cur - others : 1;
    if ((rlim_t)config->limits.clients <= possible)
        return (unsigned)config->limits.clients;
    log_event(
        log, CONFIG_LOG_WARNING, "clients_limited",
        LOG_FIELDS(log_number("configured", config->limits.clients),
                   log_number("possible", (int64_t)possible),
                   log_text("advice", "raise the limit of open files (LimitNOFILE=, ulimit -n)")));
    return (unsigned)possible;
}
