/*
 * A daemon under attack: honest clients get every reply, memory and descriptors stay within limits,
 * and afterwards all resources are released.
 *
 * `make check` runs a short form with 320 connections, and one with 500 that each send half a RESP
 * command. For the full form, run build/tests/e2e/test_attack with ATTACK_EACH=600,
 * ATTACK_IDLE=1000, ATTACK_PAUSE_MS=250, ATTACK_SECONDS=60, ATTACK_HALVES=10000 and
 * CK_DEFAULT_TIMEOUT=520 (seconds) in the environment. It opens 10,000 connections: 600 of each of
 * fifteen hostile kinds, which act four times a second, and 1,000 idle ones; then 10,000 with half
 * a command. It needs `ulimit -n` of at least 12,000.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "tests/e2e/attack.h"
#include "tests/e2e/process.h"
#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

enum { ROUNDS = 25, HONEST = 4 };

/* A connection may use this much memory, in KiB, for its buffers and the overhead of malloc. Memory
 * for unread replies is allowed for separately. */
enum { CONNECTION_KIB = 40 };

struct plan {
    struct attack_plan attack;
    unsigned seconds;
};

static struct plan plan_from_environment(void)
{
    return (struct plan){{.each = runner_setting("ATTACK_EACH", 20),
                          .idle = runner_setting("ATTACK_IDLE", 20),
                          .pause_ms = runner_setting("ATTACK_PAUSE_MS", 1)},
                         runner_setting("ATTACK_SECONDS", 0)};
}

struct attack_run {
    struct stage stage;
    struct attack attack;
    struct client honest[HONEST]; /* connected before the attack */
    const char *secret;           /* NULL: no users configured */
    unsigned turns;
    int64_t worst_ms;
    long memory_before_kib;
    long memory_most_kib;
    unsigned files_before;
    unsigned files_most;
};

/* Sends AUTH. False if the daemon closed the connection as the oldest unauthenticated one, which
 * happens to a client that a busy machine does not schedule in time. The caller then connects
 * again. */
static bool authenticate(struct attack_run *attack_run, struct client *client)
{
    char line[128];
    snprintf(line, sizeof(line), "AUTH %s\n", attack_run->secret);
    if (client_try_send(client, line) && client_wait_line(client) &&
        strcmp(client_read(client), "LIMIT unauthenticated") != 0) {
        ck_assert_str_eq(client->line, "OK");
        return true;
    }
    client_close(client);
    return false;
}

static void connect_client(struct attack_run *attack_run, struct client *client)
{
    /* The kernel may delay a SYN for a second while many others arrive. */
    struct waiting waiting = waiting_for("a connection");
    while (!client_try_tcp(client, "127.0.0.1", attack_run->stage.daemon.port) ||
           (attack_run->secret != NULL && !authenticate(attack_run, client)))
        waiting_pause(&waiting);
}

/* Locks, extends, checks and unlocks a resource. Every reply must be correct. */
static void use_lock(struct attack_run *attack_run, struct client *client)
{
    int64_t began_ms = waiting_clock_ms();
    char resource[32];
    snprintf(resource, sizeof(resource), "ci:honest:%u", attack_run->turns++);
    struct grant grant = client_lock(client, resource, "30s");
    client_expect_match(client, "OK .*", "EXTEND %s %s 30s", resource, grant.token);
    client_expect_match(client, "HELD .*", "STATUS %s", resource);
    client_expect(client, "OK", "UNLOCK %s %s", resource, grant.token);
    int64_t took_ms = waiting_clock_ms() - began_ms;
    if (took_ms > attack_run->worst_ms)
        attack_run->worst_ms = took_ms;
}

static void sample_usage(struct attack_run *attack_run)
{
    long memory_kib = process_memory_kib(attack_run->stage.daemon.pid);
    unsigned files = process_open_files(attack_run->stage.daemon.pid);
    attack_run->memory_most_kib =
        memory_kib > attack_run->memory_most_kib ? memory_kib : attack_run->memory_most_kib;
    attack_run->files_most = files > attack_run->files_most ? files : attack_run->files_most;
}

/* True once the attack has made ten passes over its connections, and each hostile kind has acted as
 * often as it has connections. */
static bool all_kinds_acted(const struct attack *attack, const struct plan *plan)
{
    bool all = attack->counts->passes >= 10;
    for (unsigned kind = ATTACK_IDLE + 1; kind < ATTACK_KINDS; kind++)
        all = all && attack->counts->actions[kind] >= plan->attack.each;
    return all &&
           attack->counts->actions[ATTACK_RESP_HALF] >= plan->attack.each + plan->attack.halves;
}

static void serve_clients(struct attack_run *attack_run, const struct plan *plan)
{
    struct waiting waiting = waiting_for("every kind of connection to act");
    int64_t until_ms = waiting_clock_ms() + (int64_t)plan->seconds * 1000;
    for (unsigned i = 0;
         i < ROUNDS || waiting_clock_ms() < until_ms || !all_kinds_acted(&attack_run->attack, plan);
         i++) {
        struct client newcomer;
        use_lock(attack_run, &attack_run->honest[i % HONEST]);
        connect_client(attack_run, &newcomer);
        use_lock(attack_run, &newcomer);
        client_expect(&newcomer, "BYE", "QUIT");
        client_close(&newcomer);
        if (i % 10 == 0)
            sample_usage(attack_run);
        if (i > ROUNDS && plan->seconds == 0)
            waiting_pause(&waiting);
    }
    sample_usage(attack_run);
}

static void report(const struct attack_run *attack_run, const struct plan *plan)
{
    const struct attack_counts *counts = attack_run->attack.counts;
    if (plan->seconds == 0)
        return;
    printf("%s: %u turns of honest clients, all correct; the longest took %ld ms\n",
           attack_run->secret != NULL ? "with users" : "without users", attack_run->turns,
           (long)attack_run->worst_ms);
    printf("  memory %ld MiB before, %ld MiB at most; descriptors %u before, %u at most\n",
           attack_run->memory_before_kib / 1024, attack_run->memory_most_kib / 1024,
           attack_run->files_before, attack_run->files_most);
    printf("  attack: %lu passes, %lu connections opened, %lu closed by the daemon;",
           counts->passes, counts->opened, counts->closed);
    for (unsigned kind = ATTACK_IDLE + 1; kind < ATTACK_KINDS; kind++)
        printf(" %s=%lu", attack_name((enum attack_kind)kind), counts->actions[kind]);
    printf("\n");
    fflush(stdout);
}

static void check_bounds(const struct attack_run *attack_run, const struct plan *plan)
{
    long connections = (long)attack_connections(&plan->attack);
    /* Four kinds have unread replies: ATTACK_UNREAD and ATTACK_RESP_UNREAD never read, and
     * ATTACK_PIPELINE and ATTACK_RESP_PIPELINE can read too slowly. */
    long unread_kib = 4 * (long)plan->attack.each * LIMIT_CLIENT_OUTPUT / 1024;
    long most_kib =
        attack_run->memory_before_kib + unread_kib + connections * CONNECTION_KIB + 65536;
    if (!process_is_sanitized) /* ASan keeps freed memory */
        ck_assert_msg(attack_run->memory_most_kib < most_kib, "%ld KiB, more than %ld",
                      attack_run->memory_most_kib, most_kib);
    /* The attack replaces the connections that it resets. The daemon may accept a replacement
     * before it notices the reset, and then it has a descriptor for each of the two. The limit
     * allows for 1,024 such pairs. */
    ck_assert_uint_le(attack_run->files_most,
                      attack_run->files_before + (unsigned)connections + 1024);
}

static void run_attack(struct attack_run *attack_run, const char *test,
                       const struct daemon_plan *daemon, const struct plan *plan)
{
    stage_open(&attack_run->stage, test, &(struct stage_plan){.masters = 3, .daemon = *daemon});
    for (unsigned i = 0; i < HONEST; i++) {
        connect_client(attack_run, &attack_run->honest[i]);
        use_lock(attack_run, &attack_run->honest[i]);
    }
    attack_run->memory_before_kib = process_memory_kib(attack_run->stage.daemon.pid);
    attack_run->files_before = process_open_files(attack_run->stage.daemon.pid);
    attack_start(&attack_run->attack, attack_run->stage.daemon.port, &plan->attack);
    serve_clients(attack_run, plan);
    report(attack_run, plan);
    attack_stop(&attack_run->attack);
    check_bounds(attack_run, plan);

    /* The daemon has closed all hostile connections and released their descriptors. */
    stage_wait_clients(&attack_run->stage, 1 + HONEST);
    struct waiting waiting = waiting_for("all descriptors to be closed");
    while (process_open_files(attack_run->stage.daemon.pid) != attack_run->files_before)
        waiting_pause(&waiting);
    for (unsigned i = 0; i < HONEST; i++) {
        use_lock(attack_run, &attack_run->honest[i]);
        client_close(&attack_run->honest[i]);
    }
    stage_wait_no_keys(&attack_run->stage);
    stage_close(&attack_run->stage);
}

/* A long node_timeout: masters share the processors with the attack and are slow. */
enum { NODE_TIMEOUT_MS = 5000 };

static const struct daemon_plan open_daemon = {
    .tcp_host = "127.0.0.1",
    .yaml = "limits: {clients: 15000}\nlog: {level: warning}\n",
    .node_timeout_ms = NODE_TIMEOUT_MS,
};

TEST(honest_clients_are_served_under_attack)
{
    static struct attack_run attack_run;
    const struct plan plan = plan_from_environment();
    run_attack(&attack_run, __func__, &open_daemon, &plan);
}

/* Each of these connections keeps the bytes of its command until the rest arrives. */
TEST(honest_clients_are_served_among_many_half_commands)
{
    static struct attack_run attack_run;
    const struct plan plan = {{.halves = runner_setting("ATTACK_HALVES", 500),
                               .pause_ms = runner_setting("ATTACK_PAUSE_MS", 1)},
                              runner_setting("ATTACK_SECONDS", 0)};
    run_attack(&attack_run, __func__, &open_daemon, &plan);
}

/* The attackers never authenticate, and the limit of unauthenticated connections is low. Clients
 * with a secret must still get in. */
TEST(users_authenticate_and_are_served_under_attack)
{
    static struct attack_run attack_run;
    struct secrets secrets;
    struct plan plan = plan_from_environment();
    char more[128];
    snprintf(more, sizeof(more),
             "limits: {clients: 15000, auth_timeout: 1m, unauthenticated: %u}\n",
             2 * plan.attack.each);
    secrets_open(&secrets, more);
    char *level = strstr(secrets.yaml, "{level: debug}");
    ck_assert_ptr_nonnull(level);
    memcpy(level, "{level: error}", strlen("{level: error}"));
    attack_run.secret = SECRET_CI;
    run_attack(&attack_run, __func__,
               &(struct daemon_plan){.tcp_host = "127.0.0.1",
                                     .yaml = secrets.yaml,
                                     .node_timeout_ms = NODE_TIMEOUT_MS},
               &plan);
    secrets_close(&secrets);
}

/* A client sends thousands of lines, far more than the read budget, and then half-closes. It must
 * get all replies. */
TEST(every_line_before_a_half_close_is_answered)
{
    enum { LINES = 5000 };
    struct stage stage;
    struct client client;
    char *lines = malloc(LINES * 5 + 1);
    ck_assert_ptr_nonnull(lines);
    for (size_t i = 0; i < LINES; i++)
        memcpy(lines + i * 5, "PING\n", 6);
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3});
    daemon_connect(&stage.daemon, &client);
    client_send(&client, lines);
    client_send(&client, "#last STATUS a\n");
    client_half_close(&client);
    for (size_t i = 0; i < LINES; i++)
        ck_assert_str_eq(client_read(&client), "PONG");
    client_read_match(&client, "#last FREE");
    client_expect_end(&client);
    client_close(&client);
    free(lines);
    stage_close(&stage);
}
