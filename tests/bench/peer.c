#include "tests/bench/peer.h"

#include <check.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/process.h"

enum { NUMBER_TEXT = 24, PORTS_TEXT = 128 };

static void list_ports(const struct peer_plan *plan, char *ports)
{
    size_t len = 0;
    for (unsigned i = 0; i < plan->master_count; i++)
        len += (size_t)snprintf(ports + len, PORTS_TEXT - len, "%s%d", i > 0 ? "," : "",
                                plan->masters[i].port);
    ck_assert_uint_lt(len, PORTS_TEXT);
}

/* Run the peer and wait for its end. Only the time limit of the test limits the wait. */
static void run_and_wait(const struct peer_plan *plan, const char *output, const char *errors)
{
    char program[SANDBOX_FILE], ports[PORTS_TEXT], daemon_port[NUMBER_TEXT];
    char etcd_port[NUMBER_TEXT], in_flight[NUMBER_TEXT], for_ms[NUMBER_TEXT], hold_ms[NUMBER_TEXT];
    const char *peers = getenv("PEERS");
    int status;
    ck_assert_msg(peers != NULL, "PEERS is not set: run make bench-peers");
    bool in_python = strstr(plan->name, ".py") != NULL;
    snprintf(program, sizeof(program), "%s/bench.%s", peers, in_python ? "py" : "mjs");
    snprintf(daemon_port, sizeof(daemon_port), "%d", plan->daemon_port);
    snprintf(etcd_port, sizeof(etcd_port), "%d", plan->etcd_port);
    snprintf(in_flight, sizeof(in_flight), "%u", plan->in_flight);
    snprintf(for_ms, sizeof(for_ms), "%" PRId64, plan->for_ns / 1000000);
    snprintf(hold_ms, sizeof(hold_ms), "%u", plan->hold_ms);
    list_ports(plan, ports);
    const char *argv[] = {in_python ? "/usr/bin/python3" : "node",
                          program,
                          plan->name,
                          plan->how,
                          in_flight,
                          for_ms,
                          hold_ms,
                          ports,
                          daemon_port,
                          etcd_port,
                          NULL};
    pid_t pid =
        process_start(&(struct process_plan){.argv = argv, .output = output, .errors = errors});
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "%s ended with status %d", plan->name, status);
}

static void note_wait(struct load_result *result, int64_t ns)
{
    if (ns > result->longest_ns)
        result->longest_ns = ns;
}

/* Parse a line such as "acquire 123456": a name and a number. */
static void take_line(struct load_result *result, const char *name, double value)
{
    if (strcmp(name, "acquire") == 0) {
        spread_add(&result->acquire, (int64_t)value);
        note_wait(result, (int64_t)value);
    } else if (strcmp(name, "waiting") == 0) {
        note_wait(result, (int64_t)value);
    } else if (strcmp(name, "handover") == 0) {
        spread_add(&result->handover, (int64_t)value);
    } else if (strcmp(name, "pairs") == 0) {
        result->pairs = (uint64_t)value;
    } else if (strcmp(name, "all_pairs") == 0) {
        result->all_pairs = (uint64_t)value;
    } else if (strcmp(name, "failed") == 0) {
        result->failed = (uint64_t)value;
    } else if (strcmp(name, "seconds") == 0) {
        result->seconds = value;
    } else if (strcmp(name, "cpu_us") == 0) {
        result->client_ns = (int64_t)(value * 1000);
    } else if (strcmp(name, "jain") == 0) {
        result->jain = value;
    } else {
        ck_abort_msg("unknown name in the output of a peer: %s", name);
    }
}

/* Read the first error that the peer has reported. */
static void take_failure(struct load_result *result, const char *errors)
{
    FILE *said = fopen(errors, "r");
    if (said == NULL)
        return;
    if (fgets(result->failure, LOAD_ANSWER, said) != NULL)
        result->failure[strcspn(result->failure, "\n")] = '\0';
    fclose(said);
}

void peer_run(const struct peer_plan *plan, struct load_result *result)
{
    char output[SANDBOX_FILE], errors[SANDBOX_FILE], name[16];
    double value;
    sandbox_path(plan->sandbox, "peer.out", output);
    sandbox_path(plan->sandbox, "peer.log", errors);
    run_and_wait(plan, output, errors);
    memset(result, 0, sizeof(*result));
    FILE *said = fopen(output, "r");
    ck_assert_ptr_nonnull(said);
    while (fscanf(said, "%15s %lf", name, &value) == 2)
        take_line(result, name, value);
    fclose(said);
    ck_assert_msg(result->seconds > 0, "the output of %s is incomplete", plan->name);
    if (result->failed > 0)
        take_failure(result, errors);
    unlink(output);
    unlink(errors);
}
