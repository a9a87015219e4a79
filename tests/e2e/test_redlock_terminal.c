/*
 * The command redlock on a terminal: tables, colours, progress and hints, and completion in bash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/e2e/command.h"
#include "tests/e2e/redlock_fixture.h"
#include "tests/e2e/terminal.h"
#include "tests/runner.h"

static struct stage stage;

static void setup(void)
{
    redlock_open_stage(&stage, runner_test_name);
}

static void teardown(void)
{
    stage_close(&stage);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = teardown};

static char *show(const char *text)
{
    struct words words;
    int status;
    redlock_split(&words, text);
    char *shown = terminal_run(words.argv, &status);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "redlock %s: %s", text, shown);
    return shown;
}

static void expect_shown(const char *text, const char *pattern)
{
    char *shown = show(text);
    ck_assert_msg(redlock_matches(shown, pattern), "redlock %s shows:\n%s", text, shown);
    free(shown);
}

TEST(listings_are_tables_on_a_terminal)
{
    client_lock(&stage.client, "deploy", "60s");
    expect_shown("locks", "\033\\[1mRESOURCE\033\\[0m  \033\\[1mTOKEN\033\\[0m  .*\n"
                          "deploy    [0-9a-f]{8} .* 5[0-9]\\.[0-9]s .*\n");
    expect_shown("nodes", "\033\\[1mNODE\033\\[0m.*\na .*\033\\[32mup\033\\[0m.*\nb .*\nc .*\n");
    expect_shown("stats", "\033\\[1msubject\033\\[0m +daemon\n.*\n\n\033\\[1mSUBJECT.*");
    expect_shown("locks --json", "\\[\\{\"resource\":\"deploy\",.*\\}\\]\n");
    expect_shown("locks none", "redlock: no locks\n");
    expect_shown("status free", "free\n");
}

TEST(colours_are_off_with_no_color_or_a_dumb_terminal)
{
    static const struct {
        const char *variable;
        const char *value;
    } unwanted[] = {{"NO_COLOR", "1"}, {"TERM", "dumb"}, {"TERM", ""}};
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++) {
        redlock_use_daemon(&stage.daemon);
        setenv(unwanted[i].variable, unwanted[i].value, 1);
        expect_shown("nodes", "NODE  URL .*\na     unix:[^\033]*\nb [^\033]*\nc [^\033]*\n");
    }
    redlock_use_daemon(&stage.daemon);
    setenv("NO_COLOR", "", 1);
    expect_shown("nodes", "\033\\[1mNODE.*");
}

/* Runs a job in a shell with job control, which owns the terminal. The job waits for more than a
 * second. The terminal must show only the final message. */
static void expect_silent_wait(const char *kind, const char *job)
{
    const char *const argv[] = {"bash", "-mc", job, NULL};
    int status;
    setenv("TERM", kind, 1);
    char *shown = terminal_run(argv, &status);
    ck_assert_msg(redlock_matches(shown, "redlock: deploy: another client [^\033]*\n"),
                  "the terminal shows:\n%s", shown);
    free(shown);
}

TEST(progress_is_hidden_on_dumb_terminals_and_in_the_background)
{
    client_lock(&stage.client, "deploy", "60s");
    expect_silent_wait("xterm", "$REDLOCK lock --wait 2s deploy & wait");
    expect_silent_wait("dumb", "$REDLOCK lock --wait 2s deploy; true");
    expect_silent_wait("", "$REDLOCK lock --wait 2s deploy; true");
}

TEST(an_interactive_lock_shows_how_to_unlock)
{
    char words[LINE_SIZE], shown[LINE_SIZE], secret[SANDBOX_FILE];
    expect_shown("lock deploy", "[0-9a-f]{40}\nredlock: valid for 29\\.[0-9]s; "
                                "to release it:  redlock unlock deploy [0-9a-f]{40}\n");
    sandbox_write(sandbox_path(&stage.sandbox, "secret", secret), "0123456789abcdef\n");
    snprintf(words, sizeof(words), "lock --secret-file %s secret", secret);
    snprintf(shown, sizeof(shown), "[^ ]* valid .* unlock --secret-file %s secret [0-9a-f]*\n",
             secret);
    expect_shown(words, shown);
    expect_shown("lock --json other", "\\{\"status\":\"ok\",.*\\}\n");
}

/* Acquires a lock on a terminal, and runs the suggested unlock command in a shell where REDLOCK_URL
 * names no daemon. */
static void check_unlocks(const char *name)
{
    static const char lead[] = "to release it:  redlock ";
    char text[LINE_SIZE];
    snprintf(text, sizeof(text), "lock --url unix:%s -- %s", stage.daemon.socket, name);
    char *shown = show(text);
    const char *hint = strstr(shown, lead);
    ck_assert_msg(hint != NULL, "redlock %s shows: %s", text, shown);
    snprintf(text, sizeof(text), "$REDLOCK %s", hint + strlen(lead));
    const char *argv[] = {"bash", "-c", text, NULL};
    struct command command;
    command_run(&command, &stage.sandbox, argv);
    ck_assert_msg(command.status == 0, "%s: %s", text, command.errors);
    command_free(&command);
    free(shown);
}

TEST(the_suggested_unlock_command_works_in_a_shell)
{
    static const char *const names[] = {"deploy",      "-v",         "it's", "$(false)", "a;b&c",
                                        "caf\xc3\xa9", "a\x9b\xff-", "#x",   "*"};
    setenv("REDLOCK_URL", "unix:/nobody/there", 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_unlocks(names[i]);
    stage_wait_no_keys(&stage);
}

TEST(control_characters_in_names_are_escaped)
{
    client_ask(&stage.client, "LOCK a\x9b\xff 60s");
    client_ask(&stage.client, "LOCK caf\xc3\xa9 60s");
    char *shown = show("locks");
    ck_assert_msg(strstr(shown, "\na\\x9b\\xff  ") != NULL, "%s", shown);
    ck_assert_msg(strstr(shown, "\ncaf\xc3\xa9       ") != NULL, "%s", shown);
    free(shown);
}

/* --- completion --- */

TEST(bash_completes_commands_options_and_names)
{
    char broken[SANDBOX_FILE];
    setenv("BROKEN", sandbox_path(&stage.sandbox, "broken", broken), 1);
    client_lock(&stage.client, "deploy", "60s");
    client_lock(&stage.client, "deploy:eu", "60s");
    client_lock(&stage.client, "$(touch${IFS}$BROKEN)", "60s");
    redlock_expect_script(&stage,
                          "PATH=$(cd \"$(dirname \"$REDLOCK\")\" && pwd):$PATH\n"
                          "bash tests/e2e/completion.bash client/completion/redlock.bash",
                          0, "", "");
    ck_assert_msg(!sandbox_exists(broken), "the shell executed the name of a lock");
}
