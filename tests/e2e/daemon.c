#include "tests/e2e/daemon.h"

#include <check.h>
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/clock.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/waiting.h"

const char *daemon_program(void)
{
    const char *program = getenv("REDLOCKD");
    return program != NULL ? program : "build/redlockd";
}

/* --- files --- */

static void write_config(const struct daemon *daemon, const struct master *masters,
                         unsigned master_count, const struct daemon_plan *plan)
{
    char *text;
    size_t len;
    FILE *yaml = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(yaml);
    fprintf(yaml, "cluster: e2e\nlisten:\n  - {url: \"unix:%s\"%s}\n", daemon->socket,
            plan->listen_fields != NULL ? plan->listen_fields : "");
    if (plan->tcp_host != NULL && plan->tls_fields != NULL)
        fprintf(yaml, "  - {url: \"tls://%s:%d\"%s}\n", plan->tcp_host, daemon->port,
                plan->tls_fields);
    else if (plan->tcp_host != NULL)
        fprintf(yaml, "  - tcp://%s:%d\n", plan->tcp_host, daemon->port);
    fprintf(yaml, "nodes:\n");
    for (unsigned i = 0; i < master_count; i++) {
        char url[MASTER_URL];
        master_url(&masters[i], url);
        fprintf(yaml, "  - {name: %c, url: \"%s\"%s}\n", 'a' + (int)i, url,
                plan->node_fields != NULL ? plan->node_fields : "");
    }
    fprintf(yaml, "locks: {clock_drift_margin: %ums%s}\n",
            plan->margin_ms != 0 ? plan->margin_ms : DAEMON_MARGIN_MS,
            plan->locks != NULL ? plan->locks : "");
    fprintf(yaml, "rounds:\n  node_timeout: %ums\n",
            plan->node_timeout_ms != 0 ? plan->node_timeout_ms : DAEMON_NODE_TIMEOUT_MS);
    if (plan->yaml != NULL)
        fputs(plan->yaml, yaml);
    else
        fprintf(yaml, "log: {level: debug}\n");
    ck_assert_int_eq(fclose(yaml), 0);
    sandbox_write(daemon->config, text);
    free(text);
}

void daemon_prepare(struct daemon *daemon, const struct sandbox *sandbox,
                    const struct master *masters, unsigned master_count,
                    const struct daemon_plan *plan)
{
    const char *name = plan->name != NULL ? plan->name : "redlockd";
    char file[32];
    *daemon = (struct daemon){.sandbox = sandbox,
                              .other_host = plan->other_host,
                              .network = plan->network,
                              .clock_ahead_s = plan->clock_ahead_s};
    if (plan->tcp_host != NULL)
        daemon->port = port_free();
    snprintf(file, sizeof(file), "%s.yaml", name);
    sandbox_path(sandbox, file, daemon->config);
    snprintf(file, sizeof(file), "%s.sock", name);
    sandbox_path(sandbox, file, daemon->socket);
    snprintf(file, sizeof(file), "%s.log", name);
    sandbox_path(sandbox, file, daemon->log);
    write_config(daemon, masters, master_count, plan);
}

/* --- start and stop --- */

int daemon_run(const struct daemon *daemon, const char *const *words)
{
    const char *argv[8] = {daemon_program(), "-c", daemon->config};
    for (unsigned i = 0; words[i] != NULL; i++)
        argv[3 + i] = words[i];
    pid_t pid = process_start(&(struct process_plan){.argv = argv, .errors = daemon->log});
    int status = process_wait(pid, "a run of redlockd");
    ck_assert_msg(WIFEXITED(status), "signal %d ended redlockd", WTERMSIG(status));
    return WEXITSTATUS(status);
}

void daemon_edit(const struct daemon *daemon, const char *from, const char *to)
{
    char text[8192];
    char *file = sandbox_read(daemon->config);
    char *at = strstr(file, from);
    ck_assert_msg(at != NULL, "\"%s\" is not in the file", from);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - file), file, to, at + strlen(from));
    sandbox_write(daemon->config, text);
    free(file);
}

void daemon_bootstrap(const struct daemon *daemon)
{
    ck_assert_int_eq(daemon_run(daemon, (const char *[]){"--bootstrap", NULL}), 0);
}

void daemon_start(struct daemon *daemon, rlim_t open_files)
{
    const char *here[] = {daemon_program(), "-c", daemon->config, NULL};
    /* A time namespace simulates another host. Without root, a user namespace is needed to create
     * it. */
    const char *there[] = {"unshare",        "--time", "--boottime",   "86400",
                           daemon_program(), "-c",     daemon->config, NULL};
    const char *there_as_user[] = {"unshare",      "--user", "--map-root-user", "--time",
                                   "--boottime",   "86400",  daemon_program(),  "-c",
                                   daemon->config, NULL};
    char network[SANDBOX_FILE];
    const char *in_network[] = {"nsenter", network, daemon_program(), "-c", daemon->config, NULL};
    struct clock_file clock;
    const char *const *environment = daemon->environment;
    snprintf(network, sizeof(network), "--net=%s", daemon->network != NULL ? daemon->network : "");
    if (daemon->clock_ahead_s != 0) {
        clock_open(&clock, daemon->sandbox, "daemon");
        clock_set(&clock, daemon->clock_ahead_s);
        environment = clock.environment;
    }
    daemon->pid = process_start(&(struct process_plan){
        .argv = daemon->network != NULL ? in_network
                : !daemon->other_host   ? here
                : geteuid() == 0        ? there
                                        : there_as_user,
        .environment = environment,
        .errors = daemon->log,
        .open_files = open_files,
        .sockets = daemon->sockets,
        .socket_count = daemon->socket_count,
    });
}

static void expect_running(struct daemon *daemon)
{
    int status;
    if (!process_ended(daemon->pid, &status))
        return;
    daemon->pid = 0;
    ck_abort_msg("the daemon has ended, status %d", status);
}

void daemon_connect(const struct daemon *daemon, struct client *client)
{
    client_connect_unix(client, daemon->socket);
}

static void connect_when_listening(struct daemon *daemon, struct client *client)
{
    struct waiting waiting = waiting_for("the daemon to listen");
    while (!client_try_unix(client, daemon->socket)) {
        expect_running(daemon);
        waiting_pause(&waiting);
    }
}

/* Ends the connection and waits for the close, so that it no longer counts as a client. */
static void quit_client(struct client *client)
{
    client_expect(client, "BYE", "QUIT");
    client_expect_end(client);
    client_close(client);
}

void daemon_wait_listening(struct daemon *daemon)
{
    struct client client;
    connect_when_listening(daemon, &client);
    quit_client(&client);
}

void daemon_wait_up(struct daemon *daemon, unsigned up)
{
    struct client client;
    connect_when_listening(daemon, &client);
    client_wait_count(&client, "NODES", "vote=yes", up);
    quit_client(&client);
}

bool daemon_shows_token(const char *text)
{
    unsigned digits = 0;
    for (; *text != '\0' && digits < 40; text++)
        digits = isxdigit((unsigned char)*text) ? digits + 1 : 0;
    return digits == 40;
}

void daemon_check_log(const struct daemon *daemon)
{
    char *log = sandbox_read(daemon->log);
    ck_assert_msg(strstr(log, "Sanitizer") == NULL, "the log has a sanitizer report");
    ck_assert_msg(strstr(log, "runtime error:") == NULL, "the log has a sanitizer report");
    ck_assert_msg(!daemon_shows_token(log), "the log has a whole token");
    free(log);
}

void daemon_check_end(struct daemon *daemon)
{
    int status = process_wait(daemon->pid, "the daemon");
    daemon->pid = 0;
    daemon_check_log(daemon);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the daemon ended with status %d",
                  status);
}

void daemon_stop(struct daemon *daemon)
{
    if (daemon->pid == 0)
        return;
    expect_running(daemon);
    ck_assert_int_eq(kill(daemon->pid, SIGTERM), 0);
    daemon_check_end(daemon);
}

int daemon_refuses(struct daemon *daemon)
{
    daemon_start(daemon, 0);
    int status = process_wait(daemon->pid, "a daemon that must not start");
    daemon->pid = 0;
    daemon_check_log(daemon);
    ck_assert_msg(WIFEXITED(status), "signal %d ended the daemon", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* --- the log --- */

static unsigned count_lines(const struct daemon *daemon, const char *first, const char *second)
{
    char *log = sandbox_read(daemon->log);
    unsigned count = 0;
    char *rest = NULL;
    for (char *line = strtok_r(log, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        count += strstr(line, first) != NULL && strstr(line, second) != NULL;
    free(log);
    return count;
}

void daemon_reload(const struct daemon *daemon, const char *event)
{
    unsigned before = daemon_count_log(daemon, event);
    struct waiting waiting = waiting_for(event);
    ck_assert_int_eq(kill(daemon->pid, SIGHUP), 0);
    while (daemon_count_log(daemon, event) == before)
        waiting_pause(&waiting);
}

unsigned daemon_count_log(const struct daemon *daemon, const char *text)
{
    return count_lines(daemon, text, "");
}

void daemon_wait_log(const struct daemon *daemon, const char *first, const char *second)
{
    char what[256];
    snprintf(what, sizeof(what), "a line with \"%s\" and \"%s\" in the log", first, second);
    struct waiting waiting = waiting_for(what);
    while (count_lines(daemon, first, second) == 0)
        waiting_pause(&waiting);
}

void daemon_wait_refused(const struct daemon *daemon, unsigned master, const char *reason,
                         unsigned times)
{
    char line[96];
    snprintf(line, sizeof(line), "node_without_vote node=%c reason=%s ", 'a' + (int)master, reason);
    struct waiting waiting = waiting_for(line);
    while (count_lines(daemon, line, "") < times)
        waiting_pause(&waiting);
}
