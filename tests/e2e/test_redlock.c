/*
 * The command redlock with a daemon over real masters: its output and exit codes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/hostile_server.h"
#include "tests/e2e/process.h"
#include "tests/e2e/redlock_fixture.h"
#include "tests/runner.h"

static const char unknown_token[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/* --- lock, unlock, extend --- */

TEST(lock_prints_the_token_that_unlock_takes)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    redlock_expect_script(&stage,
                          "token=$($REDLOCK lock deploy) && echo \"$token\" &&"
                          "$REDLOCK status deploy && $REDLOCK unlock deploy $token &&"
                          "$REDLOCK status deploy",
                          0, "[0-9a-f]{40}\nheld [0-9]+\\.[0-9]s\nfree\n", "");
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

TEST(a_fence_follows_the_token_and_grows)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    redlock_expect_script(
        &stage,
        "first=$($REDLOCK lock --fence deploy) && $REDLOCK unlock deploy \"$first\" &&"
        "second=$($REDLOCK lock --fence deploy) &&"
        "[ ${second#* } -gt ${first#* } ] && echo \"$second\"",
        0, "[0-9a-f]{40} [0-9]+\n", "");
    stage_close(&stage);
}

TEST(a_held_lock_is_refused_at_once_or_after_the_wait)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    client_lock(&stage.client, "deploy", "60s");
    redlock_expect(&stage, "lock --nonblock deploy", 1, "", "redlock: deploy: another client.*\n");
    redlock_expect(&stage, "lock --wait 0 deploy", 1, "", "redlock: deploy: another client.*\n");
    redlock_expect(&stage, "lock --wait 100ms deploy", 124, "",
                   "redlock: deploy: another client.*\n");
    redlock_expect(&stage, "lock -n --quiet deploy", 1, "", "");
    redlock_expect(&stage, "lock -w 100ms -q deploy", 124, "", "");
    redlock_expect(&stage, "lock -n -q --json deploy", 1, "\\{\"status\":\"held\",.*\\}\n", "");
    stage_close(&stage);
}

/* The command sends the time of --wait in whole milliseconds. Rounding must not leave a remainder
 * for which the command would send a second request. */
TEST(a_wait_that_times_out_is_one_request)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    client_lock(&stage.client, "deploy", "60s");
    for (unsigned i = 0; i < 10; i++)
        redlock_expect(&stage, "lock --wait 20ms deploy", 124, "",
                       "redlock: deploy: another client.*\n");
    ck_assert_uint_eq(client_count(&stage.client, "STATS", "=lock ok=1 gone=0 held=10 "), 1);
    stage_close(&stage);
}

/* Starts a command that waits, releases the lock once the command is queued, and expects a
 * grant. */
static void check_waits(struct stage *stage, const char *words)
{
    char output[SANDBOX_FILE];
    char errors[SANDBOX_FILE];
    struct words split_words;
    struct grant grant = client_lock(&stage->client, "deploy", "60s");
    redlock_split(&split_words, words);
    sandbox_path(&stage->sandbox, "waiter.out", output);
    sandbox_path(&stage->sandbox, "waiter.log", errors);
    pid_t pid = process_start(
        &(struct process_plan){.argv = split_words.argv, .output = output, .errors = errors});
    client_wait_count(&stage->client, "LOCKS", "waiters=1", 1);
    client_expect(&stage->client, "OK", "UNLOCK deploy %s", grant.token);
    int status = process_wait(pid, "a lock that waits");
    char *token = sandbox_read(output);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_msg(redlock_matches(token, "[0-9a-f]{40}\n"), "redlock printed: %s", token);
    free(token);
}

TEST(lock_waits_without_a_limit_by_default)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    check_waits(&stage, "lock deploy");
    stage_close(&stage);
}

TEST(lock_accepts_a_wait_above_the_limit_of_the_daemon)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    check_waits(&stage, "lock --wait 500h deploy");
    stage_close(&stage);
}

TEST(a_token_is_read_from_stdin_or_the_environment)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    redlock_expect_script(&stage,
                          "$REDLOCK lock a | $REDLOCK unlock a - && $REDLOCK status a &&"
                          "$REDLOCK lock --fence a | $REDLOCK unlock a - && $REDLOCK status a &&"
                          "export REDLOCK_TOKEN=$($REDLOCK lock a) &&"
                          "$REDLOCK extend a >&2 && $REDLOCK unlock a && $REDLOCK status a",
                          0, "free\nfree\nfree\n", "at least [0-9]+\\.[0-9]s\n");
    stage_close(&stage);
}

TEST(an_invalid_token_is_refused_and_never_shown)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    redlock_expect(&stage, "unlock a", 125, "", "redlock: TOKEN is missing.*REDLOCK_TOKEN.*\n");
    redlock_expect(&stage, "unlock a -", 125, "", "redlock: no TOKEN on standard input\n.*");
    redlock_expect(&stage, "unlock a c0ffee", 125, "", "redlock: TOKEN must be 40 [^f]*lock\n.*");
    redlock_expect(&stage, "extend a AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 125, "",
                   "redlock: TOKEN must be 40[^A]*\nredlock: [^A]*\n");
    redlock_expect_script(&stage, "REDLOCK_TOKEN=c0ffee $REDLOCK unlock a", 125, "",
                          "redlock: REDLOCK_TOKEN must be 40 .*");
    stage_close(&stage);
}

TEST(a_wrong_token_neither_releases_nor_extends)
{
    struct stage stage;
    char words[LINE_SIZE];
    redlock_open_stage(&stage, __func__);
    client_lock(&stage.client, "a", "60s");
    snprintf(words, sizeof(words), "unlock a %s", unknown_token);
    redlock_expect(&stage, words, 1, "", "redlock: a: .*\n");
    snprintf(words, sizeof(words), "extend a %s", unknown_token);
    redlock_expect(&stage, words, 1, "", "redlock: a: .*\n");
    redlock_expect(&stage, "status a", 0, "held .*\n", "");
    stage_close(&stage);
}

TEST(extend_prints_the_guaranteed_validity)
{
    struct stage stage;
    char words[LINE_SIZE];
    redlock_open_stage(&stage, __func__);
    struct grant grant = client_lock(&stage.client, "a", "5s");
    snprintf(words, sizeof(words), "extend --ttl 50s a %s", grant.token);
    redlock_expect(&stage, words, 0, "at least 4[0-9]\\.[0-9]s\n", "");
    /* EXTEND does not shorten the TTL of the key, but guarantees only the shorter validity. */
    snprintf(words, sizeof(words), "extend --ttl 1s a %s", grant.token);
    redlock_expect(&stage, words, 0, "at least [0-9]{1,3}ms\n", "");
    ck_assert_int_gt(master_integer(&stage.masters[0], "PTTL redlock:a"), 10000);
    stage_close(&stage);
}

/* --- errors --- */

TEST(missing_masters_and_held_locks_exit_differently)
{
    struct stage stage;
    char words[LINE_SIZE];
    redlock_open_stage(&stage, __func__);
    stage_stop_masters(&stage, 1, 2);
    redlock_expect(&stage, "lock -n a", 123, "", "redlock: a: .*\n");
    redlock_expect(&stage, "lock -q -n a", 123, "", "redlock: a: .*\n");
    redlock_expect(&stage, "status a", 123, "", "redlock: a: .*\n");
    snprintf(words, sizeof(words), "unlock a %s", unknown_token);
    redlock_expect(&stage, words, 123, "", "redlock: a: .*\n");
    snprintf(words, sizeof(words), "extend a %s --json", unknown_token);
    redlock_expect(&stage, words, 123,
                   "\\{\"status\":\"noquorum\",\"resource\":\"a\",\"message\":.*\\}\n",
                   "redlock: a: .*\n");
    stage_continue_masters(&stage, 1, 2);
    stage_close(&stage);
}

TEST(without_a_daemon_every_command_fails_at_once)
{
    static const char *const commands[] = {"lock a",    "status a", "nodes", "locks a",
                                           "stats",     "clients",  "ping",  "lock --wait 1h a",
                                           "lock -n a", "lock -q a"};
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        char words[LINE_SIZE];
        snprintf(words, sizeof(words), "%s --url unix:/nobody/there", commands[i]);
        redlock_expect(&stage, words, 125, "", "redlock: unix:/nobody/there: .*\n");
        snprintf(words, sizeof(words), "--json --url unix:/nobody/there %s", commands[i]);
        redlock_expect(&stage, words, 125,
                       "\\{\"status\":\"unreachable\",.*\"message\":\"unix:.*\\}\n",
                       "redlock: unix:/nobody/there: .*\n");
    }
    stage_close(&stage);
}

TEST(an_error_of_the_daemon_is_shown)
{
    const struct stage_plan short_plan = {
        .masters = 3, .over_unix = true, .daemon = {.locks = ", max_ttl: 20s"}};
    struct stage stage;
    stage_open(&stage, __func__, &short_plan);
    redlock_use_daemon(&stage.daemon);
    redlock_expect(
        &stage, "lock --ttl 30s a", 125, "",
        "redlock: .*TTL 30s must be between [0-9]+ms and 20s; to hold it for longer, use run or "
        "extend\n");
    redlock_expect(&stage, "lock --ttl 3ms a", 125, "",
                   "redlock: .*TTL 3ms must be between [0-9]+ms and 20s\n");
    redlock_expect(
        &stage, "run --ttl 1h a true", 125, "",
        "redlock: .*TTL 1h with HOLD must be between [0-9]+ms and 20s; run extends the lock "
        "while the command runs\n");
    stage_close(&stage);
}

TEST(the_default_ttl_is_capped_by_max_ttl)
{
    const struct stage_plan short_plan = {
        .masters = 3, .over_unix = true, .daemon = {.locks = ", max_ttl: 20s"}};
    struct stage stage;
    stage_open(&stage, __func__, &short_plan);
    redlock_use_daemon(&stage.daemon);
    redlock_expect(&stage, "run --json a true", 0, "", "");
    redlock_expect(&stage, "lock --json a", 0, ".*\"left_ms\":1[0-9]{4},.*\n", "");
    redlock_expect_script(&stage, "token=$($REDLOCK lock b) && $REDLOCK extend b $token", 0,
                          "at least 1[0-9]\\.[0-9]s\n", "");
    stage_close(&stage);
}

/* A listing has at most LIMIT_LISTING_LINES lines and "more=". */
TEST(a_listing_that_is_too_long_is_an_error)
{
    struct stage stage;
    struct hostile_server *server = malloc(sizeof(*server));
    char path[SANDBOX_FILE];
    char script[SANDBOX_FILE + 128];
    ck_assert_ptr_nonnull(server);
    redlock_open_stage(&stage, __func__);
    hostile_start(server, sandbox_path(&stage.sandbox, "hostile.sock", path));
    snprintf(script, sizeof(script),
             "$REDLOCK nodes --url unix:%s >$TMPDIR/nodes; echo $?; wc -l <$TMPDIR/nodes", path);
    hostile_set(server, &(struct hostile_plan){.kind = HOSTILE_LONG, .at = 1001});
    redlock_expect_script(&stage, script, 0, "0\n1001\n", "");
    hostile_set(server, &(struct hostile_plan){.kind = HOSTILE_LONG, .at = 1002});
    redlock_expect_script(&stage, script, 0, "125\n0\n",
                          "redlock: redlockd sent a listing of more than 1001 lines\n");
    hostile_stop(server);
    free(server);
    stage_close(&stage);
}

TEST(usage_errors_suggest_the_right_usage)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    redlock_expect(&stage, "", 125, "",
                   "redlock: no command given\nredlock: `redlock help` lists.*\n");
    redlock_expect(&stage, "lokc a", 125, "",
                   "redlock: unknown command \"lokc\"; did you mean lock\\?\n.*");
    redlock_expect(
        &stage, "lock --tll 3s a", 125, "",
        "redlock: lock has no option .*did you mean --ttl\\?\n.*`redlock help lock`.*\n");
    redlock_expect(&stage, "lock --ttl 30 a", 125, "",
                   "redlock: --ttl: 30 has no unit: 30s or 30ms\\?\n.*\n");
    redlock_expect(&stage, "help lokc", 125, "",
                   "redlock: unknown command \"lokc\"; did you mean lock\\?\n.*");
    redlock_expect(&stage, "--url nonsense ping", 125, "", "redlock: nonsense is no.*\n");
    redlock_expect(&stage, "lock --json", 125,
                   "\\{\"status\":\"invalid\",\"message\":\"lock needs a NAME\"\\}\n",
                   "redlock: .*\n");
    redlock_expect(&stage, "lock --json a b", 125,
                   "\\{\"status\":\"invalid\",\"resource\":\"a\",\"message\":\"unexpected .*\\}\n",
                   "redlock: .*\n");
    redlock_expect(&stage, "help --json", 125,
                   "\\{\"status\":\"invalid\",\"message\":\"help has .*\\}\n",
                   "redlock: help has no JSON output; .*\nredlock: `redlock help` .*\n");
    redlock_expect(&stage, "lock --json --help", 125, "\\{\"status\":\"invalid\",.*\\}\n",
                   "redlock: help has .*\n");
    stage_close(&stage);
}

TEST(a_failed_write_of_the_result_is_an_error)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    redlock_expect_script(&stage, "$REDLOCK stats >/dev/full", 125, "",
                          "redlock: standard output: .*\n");
    redlock_expect_script(&stage, "$REDLOCK help >&-", 125, "", "redlock: standard output: .*\n");
    /* A lock whose token could not be printed must not stay. */
    redlock_expect_script(&stage, "$REDLOCK lock b >&-", 125, "", "redlock: standard output: .*\n");
    redlock_expect_script(&stage, "$REDLOCK status b", 0, "free\n", "");
    redlock_expect_script(&stage, "$REDLOCK lock a >/dev/full", 125, "",
                          "redlock: standard output: No space left on device\n");
    redlock_expect(&stage, "status a", 0, "free\n", "");
    /* Standard output is a pipe without a reader. */
    char script[2 * SANDBOX_FILE + 128];
    char fifo[SANDBOX_FILE];
    sandbox_path(&stage.sandbox, "fifo", fifo);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    snprintf(script, sizeof(script), "exec 3<>%s 4>%s 3>&-; $REDLOCK lock a >&4", fifo, fifo);
    redlock_expect_script(&stage, script, 125, "", "redlock: standard output: Broken pipe\n");
    redlock_expect(&stage, "status a", 0, "free\n", "");
    unlink(fifo);
    stage_close(&stage);
}

/* --- the URL of the daemon --- */

TEST(the_url_comes_from_the_option_or_the_environment)
{
    struct stage stage;
    char words[LINE_SIZE];
    redlock_open_stage(&stage, __func__);
    redlock_expect(&stage, "ping", 0, "pong\n", "");
    setenv("REDLOCK_URL", "unix:/nobody/there", 1);
    redlock_expect(&stage, "ping", 125, "", "redlock: unix:/nobody/there: .*\n");
    snprintf(words, sizeof(words), "ping --url unix:%s", stage.daemon.socket);
    redlock_expect(&stage, words, 0, "pong\n", "");
    stage_close(&stage);
}

/* --- help --- */

TEST(help_fits_the_smallest_terminal)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    /* Prints the number of help texts: the summary, and one for each of 13 commands. */
    redlock_expect_script(
        &stage,
        "for command in '' $($REDLOCK help | sed -n 's/^  \\([a-z][a-z]*\\)  .*/\\1/p')\n"
        "do $REDLOCK help $command >$TMPDIR/help || exit\n"
        "   awk -v command=\"$command\" '\n"
        "       length > 80 { print command, \"has a long line:\", $0 }\n"
        "       END { if (NR > 24) print command, \"is too long\" }' $TMPDIR/help\n"
        "   [ -z \"$command\" ] || $REDLOCK $command --help | cmp - $TMPDIR/help\n"
        "   [ -z \"$command\" ] || $REDLOCK --help $command | cmp - $TMPDIR/help\n"
        "   count=$((count + 1))\n"
        "done; echo $count",
        0, "14\n", "");
    redlock_expect(&stage, "--version", 0, "redlock [0-9]+\\.[0-9]+\\.[0-9]+\n", "");
    redlock_expect(&stage, "version --json", 0, "\\{\"status\":\"ok\",\"version\":\"[0-9.]+\"\\}\n",
                   "");
    stage_close(&stage);
}

/* --- listings --- */

TEST(listings_in_a_pipe_are_the_lines_of_the_daemon)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    client_lock(&stage.client, "deploy", "60s");
    client_lock(&stage.client, "backup", "60s");
    redlock_expect(&stage, "nodes", 0, "(node=[abc] url=[^\n]* vote=yes [^\n]*\n){3}", "");
    redlock_expect(&stage, "locks", 0, "(resource=(deploy|backup) token=[0-9a-f]{8} [^\n]*\n){2}",
                   "");
    redlock_expect(&stage, "locks deploy", 0, "resource=deploy token=[0-9a-f]{8} [^\n]*\n", "");
    redlock_expect(&stage, "locks other", 0, "", "");
    redlock_expect(&stage, "stats", 0, "subject=daemon [^\n]*\n(subject=[a-z]+ ok=[^\n]*\n){4}",
                   "");
    redlock_expect(&stage, "clients", 0,
                   "(client=[0-9]+ name=(-|redlock:clients:[0-9]+) peer=[^\n]*\n){2}", "");
    stage_close(&stage);
}

/* Python parses the JSON strictly and checks the types. */
TEST(json_is_valid_and_typed)
{
    struct stage stage;
    redlock_open_stage(&stage, __func__);
    /* Names that look like a number or an empty field, or that are not UTF-8. */
    client_lock(&stage.client, "12", "60s");
    client_lock(&stage.client, "-", "60s");
    client_lock(&stage.client, "\"\\/\xff\xc3\xa9", "60s");
    redlock_expect_script(
        &stage,
        "for words in locks 'locks none' nodes stats clients ping version \\\n"
        "    'status 12' 'status free' 'lock -n 12' lock 'unlock 12' 'lock --fence new'\n"
        "do $REDLOCK --json $words 2>$TMPDIR/errors |\n"
        "   python3 tests/e2e/redlock_json.py \"$words\" || echo \"$words\"\n"
        "done",
        0, "", "");
    stage_close(&stage);
}
