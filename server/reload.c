/*
 * SIGHUP: re-read the configuration and apply it, all or nothing.
 *
 *    read, check    config_load()         on error every mistake is logged; nothing changes
 *    compare        config_diff()         refused if a key differs that requires a restart
 *    open           load_node_tls(),      refused if a TLS file cannot be loaded,
 *                   listeners_prepare()   or an address cannot be opened
 *    ------------------------------------ the reload is no longer refused below this line
 *    apply          config_adopt(), replace_node_tls(), listeners_commit(), renew_users(),
 *                   apply_config()
 *
 * There is one exception to all or nothing: if there is not enough memory for the new users, the
 * old users stay, and an error is logged.
 *
 * The file is read in the event loop, so no client is served meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/diff.h"
#include "config/nodes.h"
#include "config/users.h"
#include "server/clients/listener.h"
#include "server/rules.h"
#include "server/server.h"

/* Log each line of the configuration check's report. */
static void log_report(const struct server *server, enum config_log_level level, char *report)
{
    char *rest = report;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
        if (line[0] != '\0')
            log_event(&server->log, level, "config_checked", LOG_FIELDS(log_text("message", line)));
}

static void log_refused(const struct server *server, const char *why)
{
    log_event(&server->log, CONFIG_LOG_ERROR, "reload_refused",
              LOG_FIELDS(log_text("file", server->task.config_file), log_text("why", why),
                         log_text("in_force", "the previous configuration")));
}

/* Whether the file exists and is not a regular one. Reading a pipe or a terminal could block the
 * event loop. */
static bool is_irregular(const char *file)
{
    struct stat status;
    return stat(file, &status) == 0 && !S_ISREG(status.st_mode);
}

/* NULL if the file cannot be read or has errors; the reason has been logged. */
static struct config *load_again(const struct server *server)
{
    char *report = NULL;
    size_t len = 0;
    if (strcmp(server->task.config_file, "-") == 0) {
        log_refused(server,
                    "a configuration from standard input cannot be reloaded; restart the daemon");
        return NULL;
    }
    if (is_irregular(server->task.config_file)) {
        log_refused(server, "the configuration is not a regular file");
        return NULL;
    }
    FILE *out = open_memstream(&report, &len);
    if (out == NULL) {
        log_refused(server, "not enough memory");
        return NULL;
    }
    struct config *wanted = config_load(server->task.config_file, CONFIG_NORMAL, out);
    fclose(out);
    log_report(server, wanted != NULL ? CONFIG_LOG_WARNING : CONFIG_LOG_ERROR, report);
    free(report);
    if (wanted == NULL)
        log_refused(
            server,
            "the configuration cannot be read or has errors; see the log lines before this one");
    return wanted;
}

static bool log_fixed_keys(const struct server *server, const struct config_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++) {
        const struct config_difference *difference = &diff->found[i];
        if (difference->why_not != NULL)
            log_event(&server->log, CONFIG_LOG_ERROR, "reload_cannot_change",
                      LOG_FIELDS(log_text("key", difference->name),
                                 log_text("why", difference->why_not)));
    }
    if (diff->refused > 0)
        log_refused(
            server,
            "a reload cannot change some of the changed keys; see the lines before this one");
    return diff->refused == 0;
}

/* In bytes. The log truncates a value to LOG_VALUE_MAX bytes and adds "...". This limit is larger,
 * so that a list that is cut off here also ends with "..." in the log. */
enum { NAMES_MAX = 512 };

static void name_changes(const struct config_diff *diff, char names[NAMES_MAX])
{
    size_t len = 0;
    names[0] = '\0';
    for (size_t i = 0; i < diff->count && len < NAMES_MAX; i++)
        len += (size_t)snprintf(names + len, NAMES_MAX - len, "%s%s", i > 0 ? ", " : "",
                                diff->found[i].name);
}

/* Log the reload if either the old or the new level allows it. */
static void log_done(const struct server *server, const struct config_diff *diff,
                     enum config_log_level level_before)
{
    struct log log = server->log;
    char names[NAMES_MAX];
    if (level_before < log.level)
        log.level = level_before;
    name_changes(diff, names);
    log_event(&log, CONFIG_LOG_INFO, "reloaded",
              LOG_FIELDS(log_text("file", server->task.config_file),
                         log_text("changed", diff->count > 0 ? names : "nothing")));
}

/* Replace the users. config_adopt() has swapped the configurations, so `wanted` has the old
 * users. */
static void renew_users(struct server *server, struct config *wanted)
{
    bool same = users_equal(server->config, wanted);
    if (!same && clients_renew_users(&server->clients))
        return;
    /* The users are the same, or there is not enough memory. Keep the old users, because the
     * sessions refer to them. */
    struct config_users *kept = server->config->users;
    server->config->users = wanted->users;
    wanted->users = kept;
    if (same)
        return;
    log_event(&server->log, CONFIG_LOG_ERROR, "users_unchanged",
              LOG_FIELDS(log_text("why", "there is not enough memory for the new users")));
}

/* --- TLS to the masters --- */

/* Re-read the TLS files of each node. On failure, the caller releases the contexts in `loaded`. */
static bool load_node_tls(const struct server *server, struct config *wanted,
                          struct tls loaded[LIMIT_NODES], struct error *error)
{
    const struct config *config = server->config;
    for (unsigned i = 0; i < config->node_count; i++) {
        const struct config_node *node = &wanted->nodes[nodes_find(wanted, config->nodes[i].name)];
        if (node->address.tls && !tls_init_node(&loaded[i], &node->tls, error))
            return false;
    }
    return true;
}

/* New connections to each master use the new context. */
static void replace_node_tls(struct server *server, const struct tls loaded[LIMIT_NODES])
{
    for (unsigned i = 0; i < server->config->node_count; i++) {
        struct tls *tls = &server->connections.tls[i];
        if (!tls_is_same_certificate(tls, &loaded[i]))
            log_event(&server->log, CONFIG_LOG_INFO, "certificate_changed",
                      LOG_FIELDS(log_text("node", server->config->nodes[i].name)));
        tls_deinit(tls);
        *tls = loaded[i];
    }
}

/* Pass the new values to the modules that keep copies of them. */
static void apply_config(struct server *server)
{
    const struct config *config = server->config;
    const struct engine_rules rules = rules_of(config);
    engine_apply_config(server->engine, &rules);
    clients_apply_config(&server->clients, rules_clients(config, &server->log));
    server->log.level = config->log.level;
    server->log.format = config->log.format;
    pass_want_end(&server->pass);
}

/* On success, `wanted` holds the previous configuration. */
static bool change(struct server *server, struct config *wanted)
{
    struct config_diff diff;
    struct listeners_change listeners;
    struct tls node_tls[LIMIT_NODES] = {0};
    struct error error;
    enum config_log_level level_before = server->log.level;
    config_diff(server->config, wanted, &diff);
    if (!log_fixed_keys(server, &diff))
        return false;
    if (!load_node_tls(server, wanted, node_tls, &error) ||
        !listeners_prepare(&server->clients, wanted, &listeners, &error)) {
        for (unsigned i = 0; i < LIMIT_NODES; i++)
            tls_deinit(&node_tls[i]);
        log_refused(server, error.text);
        return false;
    }
    config_adopt(server->config, wanted);
    replace_node_tls(server, node_tls);
    listeners_commit(&server->clients, &listeners);
    renew_users(server, wanted);
    apply_config(server);
    log_done(server, &diff, level_before);
    return true;
}

void reload(struct server *server)
{
    notifier_reloading(&server->notifier);
    struct config *wanted = load_again(server);
    server->reload_refused = wanted == NULL || !change(server, wanted);
    config_free(wanted);
    notifier_reloaded(&server->notifier);
}
