/*
 * The examples of docs/clients.md and README.md, extracted from the page and run against a real
 * daemon by tests/e2e/guests/guest.sh. The packages have tests of their own (client/scenarios.md).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const char *const languages[] = {"Python", "Node", "Go", "C", "Shell", "Any Redis client"};

/* README.md has examples of the first languages only. */
enum { LANGUAGES = sizeof(languages) / sizeof(languages[0]), README_LANGUAGES = 3 };

static const struct stage_plan three = {
    .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};

struct guest {
    pid_t pid;
    char output[SANDBOX_FILE];
};

/* `make check` does not install Go; `make audit` does. */
static bool is_installed(int language)
{
    return strcmp(languages[language], "Go") != 0 || system("command -v go >/dev/null") == 0;
}

static void start_named(struct guest *guest, const struct stage *stage, const char *page,
                        int language, const char *wait_s, const char *work, const char *name)
{
    char port[16];
    snprintf(port, sizeof(port), "%d", stage->daemon.port);
    sandbox_path(&stage->sandbox, name, guest->output);
    const char *argv[] = {"sh",
                          "tests/e2e/guests/guest.sh",
                          page,
                          languages[language],
                          stage->sandbox.dir,
                          port,
                          wait_s,
                          work,
                          NULL};
    guest->pid = process_start(&(struct process_plan){.argv = argv, .errors = guest->output});
}

static void start(struct guest *guest, const struct stage *stage, int language, const char *wait_s)
{
    start_named(guest, stage, "docs/clients.md", language, wait_s, "until-finish", "guest.log");
}

/* Waits until the guest has printed the text. */
static void wait_printed(const struct guest *guest, const char *text)
{
    struct waiting waiting = waiting_for(text);
    for (bool found = false; !found;) {
        bool runs = process_runs(guest->pid);
        char *output = sandbox_read(guest->output);
        found = strstr(output, text) != NULL;
        ck_assert_msg(found || runs, "printed: %s\nexpected: %s", output, text);
        free(output);
        if (!found)
            waiting_pause(&waiting);
    }
}

/* Waits for the end of the guest. Its last line must be the text. */
static void end_with(struct guest *guest, const char *text)
{
    process_wait(guest->pid, "a guest");
    char *output = sandbox_read(guest->output);
    size_t len = strlen(output);
    size_t text_len = strlen(text);
    ck_assert_msg(len > text_len && output[len - 1] == '\n' &&
                      strncmp(output + len - 1 - text_len, text, text_len) == 0,
                  "printed: %s\nexpected: %s", output, text);
    free(output);
}

static void finish(struct guest *guest, const struct sandbox *sandbox)
{
    char path[SANDBOX_FILE];
    sandbox_write(sandbox_path(sandbox, "finish", path), "");
    end_with(guest, "done");
}

static void check_locks_works_and_unlocks(const char *test, const char *page, int language)
{
    struct stage stage;
    struct guest guest;
    if (!is_installed(language))
        return;
    stage_open(&stage, test, &three);
    start_named(&guest, &stage, page, language, "60", "until-finish", "guest.log");
    wait_printed(&guest, "working ");
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK deploy 1s");
    stage_wait_key(&stage, "redlock:deploy", 3);
    finish(&guest, &stage.sandbox);
    stage_wait_key(&stage, "redlock:deploy", 0);
    stage_close(&stage);
}

TEST_LOOP(an_example_locks_works_and_unlocks, 0, LANGUAGES)
{
    check_locks_works_and_unlocks(__func__, "docs/clients.md", _i);
}

TEST_LOOP(an_example_of_the_readme_locks_works_and_unlocks, 0, README_LANGUAGES)
{
    check_locks_works_and_unlocks(__func__, "README.md", _i);
}

TEST_LOOP(an_example_reports_a_lock_that_is_held_elsewhere, 0, LANGUAGES)
{
    struct stage stage;
    struct guest guest;
    if (!is_installed(_i))
        return;
    stage_open(&stage, __func__, &three);
    client_lock(&stage.client, "deploy", "60s");
    start(&guest, &stage, _i, "1");
    end_with(&guest, "another client holds the lock");
    stage_wait_key(&stage, "redlock:deploy", 3);
    stage_close(&stage);
}

TEST_LOOP(the_daemon_can_be_restarted_during_the_work, 0, LANGUAGES)
{
    struct stage stage;
    struct guest guest;
    if (!is_installed(_i))
        return;
    stage_open(&stage, __func__, &three);
    start(&guest, &stage, _i, "60");
    wait_printed(&guest, "working ");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    finish(&guest, &stage.sandbox);
    stage_wait_key(&stage, "redlock:deploy", 0);
    stage_close(&stage);
}

/* All fencing tokens were written, each greater than the one before. */
static void check_fences(const struct sandbox *sandbox, unsigned expected)
{
    char path[SANDBOX_FILE];
    char *fences = sandbox_read(sandbox_path(sandbox, "fences", path));
    char *rest = fences;
    unsigned count = 0;
    for (unsigned long last = 0; *rest != '\0'; count++, rest++) {
        unsigned long fence = strtoul(rest, &rest, 10);
        ck_assert_uint_gt(fence, last);
        last = fence;
    }
    ck_assert_uint_eq(count, expected);
    free(fences);
}

/* Two guests of each language compete for the lock and check that they are alone under it. */
TEST(examples_of_all_languages_exclude_each_other)
{
    enum { GUESTS = 2 * LANGUAGES };
    struct stage stage;
    struct guest guests[GUESTS];
    unsigned count = 0;
    char name[32];
    char waiting_text[32];
    char token[41];
    stage_open(&stage, __func__, &three);
    snprintf(token, sizeof(token), "%s", client_lock(&stage.client, "deploy", "60s").token);
    for (int i = 0; i < GUESTS; i++) {
        if (!is_installed(i % LANGUAGES))
            continue;
        snprintf(name, sizeof(name), "guest-%d.log", i);
        start_named(&guests[count++], &stage, "docs/clients.md", i % LANGUAGES, "60", "alone",
                    name);
    }
    /* The test releases its lock when all guests wait for it, so they compete from the start. */
    snprintf(waiting_text, sizeof(waiting_text), " waiting=%u ", count);
    stage_wait_stats(&stage.client, waiting_text);
    client_expect(&stage.client, "OK", "UNLOCK deploy %s", token);
    for (unsigned i = 0; i < count; i++)
        end_with(&guests[i], "done");
    check_fences(&stage.sandbox, count);
    stage_wait_key(&stage, "redlock:deploy", 0);
    stage_close(&stage);
}
