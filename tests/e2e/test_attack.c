/*
 * A daemon under attack: honest clients get each of their answers, memory and descriptors are
 * bounded, and afterwards all is as it was.
 *
 * As `make check` runs it, with some hundred connections for a moment. In full:
 *
 *     ATTACK_EACH=1000 ATTACK_IDLE=1000 ATTACK_PAUSE_MS=250 ATTACK_SECONDS=60 \
 *         build/tests/e2e/test_attack
 *
 * which is 1000 connections hostile in each of nine ways four times a second, and 1000 that are
 * idle: 10,000. It takes `ulimit -n` of 12000 or more.
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

/* What a connection may cost beside what it leaves unread: its buffers, with those of malloc. */
enum { CONNECTION_KIB = 40 };

struct plan {
    struct attack_plan attack;
    unsigned seconds;
};

static unsigned setting(const char *name, unsigned usual)
{
    const char *text = getenv(name);
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : usual;
}

static struct plan plan_of(void)
{
    return (struct plan){
        {setting("ATTACK_EACH", 20), setting("ATTACK_IDLE", 20), setting("ATTACK_PAUSE_MS", 1)},
        setting("ATTACK_SECONDS", 0)};
}

struct field {
    struct stage stage;
    struct attack attack;
    struct client honest[HONEST]; /* they were there before */
    const char *secret;           /* NULL: there are no users */
    unsigned turns;
    int64_t worst_ms;
    long memory_before_kib;
    long memory_most_kib;
    unsigned files_before;
    unsigned files_most;
};

/* The answer to AUTH. A client that this machine leaves without a processor for too long is the
 * oldest connection by then, so the daemon closes it: false. It connects again. */
static bool authenticate(struct field *field, struct client *client)
{
    char line[128];
    snprintf(line, sizeof(line), "AUTH %s\n", field->secret);
    if (client_try_send(client, line) && client_wait_line(client) &&
        strcmp(client_read(client), "LIMIT unauthenticated") != 0) {
        ck_assert_str_eq(client->line, "OK");
        return true;
    }
    client_close(client);
    return false;
}

static void enter(struct field *field, struct client *client)
{
    /* The kernel lets a SYN wait, for a second if need be, where too many others do. */
    struct waiting waiting = waiting_for("a connection");
    while (!client_try_tcp(client, "127.0.0.1", field->stage.daemon.port) ||
           (field->secret != NULL && !authenticate(field, client)))
        waiting_pause(&waiting);
}

/* Each answer has to come, and be the right one. */
static void take_turn(struct field *field, struct client *client)
{
    int64_t began_ms = waiting_clock_ms();
    char resource[32];
    snprintf(resource, sizeof(resource), "ci:honest:%u", field->turns++);
    struct grant grant = client_lock(client, resource, "30s");
    client_expect_match(client, "OK .*", "EXTEND %s %s 30s", resource, grant.token);
    client_expect_match(client, "HELD .*", "STATUS %s", resource);
    client_expect(client, "OK", "UNLOCK %s %s", resource, grant.token);
    int64_t took_ms = waiting_clock_ms() - began_ms;
    if (took_ms > field->worst_ms)
        field->worst_ms = took_ms;
}

static void look(struct field *field)
{
    long memory_kib = process_memory_kib(field->stage.daemon.pid);
    unsigned files = process_open_files(field->stage.daemon.pid);
    field->memory_most_kib =
        memory_kib > field->memory_most_kib ? memory_kib : field->memory_most_kib;
    field->files_most = files > field->files_most ? files : field->files_most;
}

/* Has it done all it does, in each of its ways? */
static bool is_under_way(const struct attack *attack, const struct plan *plan)
{
    bool all = attack->counts->passes >= 10;
    for (unsigned kind = ATTACK_IDLE + 1; kind < ATTACK_KINDS; kind++)
        all = all && attack->counts->acts[kind] >= plan->attack.each;
    return all;
}

static void defend(struct field *field, const struct plan *plan)
{
    struct waiting waiting = waiting_for("the attack to be under way");
    int64_t until_ms = waiting_clock_ms() + (int64_t)plan->seconds * 1000;
    for (unsigned i = 0;
         i < ROUNDS || waiting_clock_ms() < until_ms || !is_under_way(&field->attack, plan); i++) {
        struct client newcomer;
        take_turn(field, &field->honest[i % HONEST]);
        enter(field, &newcomer);
        take_turn(field, &newcomer);
        client_expect(&newcomer, "BYE", "QUIT");
        client_close(&newcomer);
        if (i % 10 == 0)
            look(field);
        if (i > ROUNDS && plan->seconds == 0)
            waiting_pause(&waiting);
    }
}

static void report(const struct field *field, const struct plan *plan)
{
    const struct attack_counts *counts = field->attack.counts;
    if (plan->seconds == 0)
        return;
    printf("%s: %u turns of honest clients, all well; the longest took %ld ms\n",
           field->secret != NULL ? "with users" : "without users", field->turns,
           (long)field->worst_ms);
    printf("  memory %ld MiB before, %ld MiB at most; descriptors %u before, %u at most\n",
           field->memory_before_kib / 1024, field->memory_most_kib / 1024, field->files_before,
           field->files_most);
    printf("  attack: %lu passes, %lu connections opened, %lu closed by the daemon;",
           counts->passes, counts->opened, counts->closed);
    for (unsigned kind = ATTACK_IDLE + 1; kind < ATTACK_KINDS; kind++)
        printf(" %s=%lu", attack_word((enum attack_kind)kind), counts->acts[kind]);
    printf("\n");
    fflush(stdout);
}

static void check_bounds(const struct field *field, const struct plan *plan)
{
    long connections = (long)((ATTACK_KINDS - 1) * plan->attack.each + plan->attack.idle);
    /* Two kinds can have answers pile up: those that do not read, and for a moment pipelines. */
    long unread_kib = 2 * (long)plan->attack.each * LIMIT_CLIENT_OUTPUT / 1024;
    long most_kib = field->memory_before_kib + unread_kib + connections * CONNECTION_KIB + 65536;
    if (!process_is_sanitized) /* it keeps what was freed */
        ck_assert_msg(field->memory_most_kib < most_kib, "%ld KiB, more than %ld",
                      field->memory_most_kib, most_kib);
    /* Those that are gone already count until that is noticed: a backlog of them. */
    ck_assert_uint_le(field->files_most, field->files_before + (unsigned)connections + 1024);
}

static void run_attack(struct field *field, const char *test, const struct daemon_plan *daemon)
{
    struct plan plan = plan_of();
    stage_open(&field->stage, test, &(struct stage_plan){.masters = 3, .daemon = *daemon});
    for (unsigned i = 0; i < HONEST; i++) {
        enter(field, &field->honest[i]);
        take_turn(field, &field->honest[i]);
    }
    field->memory_before_kib = process_memory_kib(field->stage.daemon.pid);
    field->files_before = process_open_files(field->stage.daemon.pid);
    attack_start(&field->attack, field->stage.daemon.port, &plan.attack);
    defend(field, &plan);
    report(field, &plan);
    attack_stop(&field->attack);
    check_bounds(field, &plan);

    /* The daemon is rid of them all, and as it was. */
    stage_wait_clients(&field->stage, 1 + HONEST);
    struct waiting waiting = waiting_for("all descriptors to be closed");
    while (process_open_files(field->stage.daemon.pid) != field->files_before)
        waiting_pause(&waiting);
    for (unsigned i = 0; i < HONEST; i++) {
        take_turn(field, &field->honest[i]);
        client_close(&field->honest[i]);
    }
    stage_wait_no_keys(&field->stage);
    stage_close(&field->stage);
}

/* A wide node_timeout: this is about clients, and masters that share our processors are slow. */
enum { NODE_TIMEOUT_MS = 5000 };

START_TEST(honest_clients_are_served_under_attack)
{
    static struct field field;
    run_attack(&field, __func__,
               &(struct daemon_plan){.tcp_host = "127.0.0.1",
                                     .yaml = "limits: {clients: 15000}\nlog: {level: warning}\n",
                                     .node_timeout_ms = NODE_TIMEOUT_MS});
}
END_TEST

/* Nobody of the attack gets in, so there is room for few of them at a time; those who can say who
 * they are get in through them all. */
START_TEST(users_authenticate_and_are_served_under_attack)
{
    static struct field field;
    struct secrets secrets;
    struct plan plan = plan_of();
    char more[128];
    snprintf(more, sizeof(more),
             "limits: {clients: 15000, auth_timeout: 1m, unauthenticated: %u}\n",
             2 * plan.attack.each);
    secrets_open(&secrets, more);
    char *level = strstr(secrets.yaml, "{level: debug}");
    ck_assert_ptr_nonnull(level);
    memcpy(level, "{level: error}", strlen("{level: error}"));
    field.secret = SECRET_CI;
    run_attack(&field, __func__,
               &(struct daemon_plan){.tcp_host = "127.0.0.1",
                                     .yaml = secrets.yaml,
                                     .node_timeout_ms = NODE_TIMEOUT_MS});
    secrets_close(&secrets);
}
END_TEST

/* A turn takes some lines, and a client that sends thousands and its end behind them has many. */
START_TEST(every_line_before_a_half_close_is_answered)
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
    client_end(&client);
    for (size_t i = 0; i < LINES; i++)
        ck_assert_str_eq(client_read(&client), "PONG");
    client_read_match(&client, "#last FREE");
    client_expect_end(&client);
    client_close(&client);
    free(lines);
    stage_close(&stage);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("attack");
    TCase *tests = sandbox_case("attack");
    if (plan_of().seconds > 0)
        tcase_set_timeout(tests, 400 + 2 * plan_of().seconds);
    tcase_add_test(tests, honest_clients_are_served_under_attack);
    tcase_add_test(tests, every_line_before_a_half_close_is_answered);
    tcase_add_test(tests, users_authenticate_and_are_served_under_attack);
    suite_add_tcase(suite, tests);
    return suite;
}
