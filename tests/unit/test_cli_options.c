/*
 * Parsing of redlock's command line, and its errors.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/command.h"
#include "tests/runner.h"

enum { WORDS_MAX = 40, LINE_SIZE = 512 };

/* A command line, split at spaces; '' stands for an empty word. */
struct line {
    char text[LINE_SIZE];
    char *argv[WORDS_MAX + 1];
    int argc;
    struct options options;
    struct error error;
    bool fine;
};

static const struct options *parse(struct line *line, const char *text)
{
    char *rest = NULL;
    *line = (struct line){0};
    snprintf(line->text, sizeof(line->text), "redlock %s", text);
    for (char *word = strtok_r(line->text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        ck_assert_int_lt(line->argc, WORDS_MAX);
        line->argv[line->argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
    }
    line->fine = options_parse(line->argc, line->argv, &line->options, &line->error);
    return &line->options;
}

static const struct options *accept(struct line *line, const char *text)
{
    parse(line, text);
    ck_assert_msg(line->fine, "redlock %s: %s", text, line->error.text);
    return &line->options;
}

static void refuse(const char *text, const char *why)
{
    struct line line;
    parse(&line, text);
    ck_assert_msg(!line.fine, "redlock %s is accepted", text);
    ck_assert_str_eq(line.error.text, why);
}

TEST(options_have_defaults)
{
    struct line line;
    const struct options *options = accept(&line, "lock deploy");
    ck_assert_str_eq(options->command->name, "lock");
    ck_assert_str_eq(options->name, "deploy");
    ck_assert_ptr_null(options->url);
    ck_assert_int_eq(options->timeout_ms, 5000);
    ck_assert(!options->json);
    ck_assert_int_eq(options->ttl_ms, 30000);
    ck_assert_int_eq(options->wait_ms, WAIT_FOREVER);
    ck_assert(!options->fence);
    ck_assert_int_eq(options->on_lost, SIGTERM);
    ck_assert_int_eq(options->grace_ms, 10000);
    ck_assert_int_eq(options->conflict_exit, CONFLICT_EXIT_DEFAULT);
    ck_assert(!options->quiet);
}

TEST(options_may_precede_or_follow_the_command)
{
    static const char *const forms[] = {
        "--json --url unix:/x --timeout 1s lock deploy",
        "lock --json --url unix:/x --timeout 1s deploy",
        "lock deploy --json --url unix:/x --timeout 1s",
        "--json lock --url=unix:/x deploy --timeout=1s",
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct line line;
        const struct options *options = accept(&line, forms[i]);
        ck_assert(options->json);
        ck_assert_str_eq(options->url, "unix:/x");
        ck_assert_int_eq(options->timeout_ms, 1000);
        ck_assert_str_eq(options->name, "deploy");
    }
}

TEST(last_value_of_an_option_counts)
{
    struct line line;
    ck_assert_int_eq(accept(&line, "--timeout 1s lock --timeout 2s a")->timeout_ms, 2000);
}

TEST(run_takes_all_its_options)
{
    struct line line;
    const struct options *options = accept(
        &line,
        "run --ttl 1m --wait 2m --slots 3 --fence --on-lost USR1 --grace 3s --conflict-exit 99 "
        "--quiet deploy -- make -j2 --json");
    ck_assert_str_eq(options->command->name, "run");
    ck_assert_int_eq(options->ttl_ms, 60000);
    ck_assert_int_eq(options->wait_ms, 120000);
    ck_assert_int_eq(options->slots, 3);
    ck_assert(options->fence);
    ck_assert_int_eq(options->on_lost, SIGUSR1);
    ck_assert_int_eq(options->grace_ms, 3000);
    ck_assert_int_eq(options->conflict_exit, 99);
    ck_assert(options->quiet);
    ck_assert_str_eq(options->name, "deploy");
    ck_assert_str_eq(options->argv[0], "make");
    ck_assert_str_eq(options->argv[1], "-j2");
    ck_assert_str_eq(options->argv[2], "--json");
    ck_assert_ptr_null(options->argv[3]);
    ck_assert(!options->json);
}

TEST(short_forms_are_those_of_flock)
{
    struct line line;
    const struct options *options = accept(&line, "run -n -E 7 deploy make");
    ck_assert_int_eq(options->wait_ms, 0);
    ck_assert_int_eq(options->conflict_exit, 7);
    ck_assert_int_eq(accept(&line, "run -E 0 deploy make")->conflict_exit, 0);
    ck_assert(accept(&line, "lock -q deploy")->quiet);
    ck_assert_int_eq(accept(&line, "lock -w 5s deploy")->wait_ms, 5000);
    ck_assert_int_eq(accept(&line, "lock -w5s deploy")->wait_ms, 5000);
    ck_assert_int_eq(accept(&line, "lock -w 0 deploy")->wait_ms, 0);
}

TEST(words_after_name_are_the_command_of_run)
{
    struct line line;
    const struct options *options = accept(&line, "run deploy ls -l -- -x");
    ck_assert_str_eq(options->argv[0], "ls");
    ck_assert_str_eq(options->argv[1], "-l");
    ck_assert_str_eq(options->argv[2], "--");
    ck_assert_str_eq(options->argv[3], "-x");
    options = accept(&line, "run -- deploy ls");
    ck_assert_str_eq(options->name, "deploy");
    ck_assert_str_eq(options->argv[0], "ls");
    options = accept(&line, "run deploy -- -odd");
    ck_assert_str_eq(options->argv[0], "-odd");
    options = accept(&line, "run deploy -- -- ls");
    ck_assert_str_eq(options->argv[0], "--");
}

TEST(names_of_run_are_in_byte_order)
{
    struct line line;
    const struct options *options = accept(&line, "run --also b --also=B --also ab a make");
    ck_assert_uint_eq(options->also_count, 3);
    ck_assert_str_eq(options->name, "B");
    ck_assert_str_eq(options->also[0], "a");
    ck_assert_str_eq(options->also[1], "ab");
    ck_assert_str_eq(options->also[2], "b");
    /* Bytes above 0x7f come last: "\xc3\xa4" is a letter in UTF-8. */
    options = accept(&line, "run --also \xc3\xa4 --also -x z make");
    ck_assert_str_eq(options->name, "-x");
    ck_assert_str_eq(options->also[0], "z");
    ck_assert_str_eq(options->also[1], "\xc3\xa4");
}

TEST(run_refuses_names_that_it_cannot_lock_together)
{
    char text[LINE_SIZE] = "run";
    struct line line;
    refuse("run --also b --also a b make", "--also: the name \"b\" is given twice");
    refuse("run --also b --also b a make", "--also: the name \"b\" is given twice");
    refuse("run --also '' a make", "--also must not be empty");
    refuse("run --also a\tb a make", "--also must not contain spaces or control characters");
    refuse("run --also b", "run needs a NAME");
    refuse("run --also b --slots 2 a make", "--slots and --also exclude each other");
    refuse("lock --also b a", "lock takes no --also");
    for (char name = 'b'; name <= 'p'; name++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " --also %c", name);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), " a make");
    ck_assert_uint_eq(accept(&line, text)->also_count, 15);
    char more[LINE_SIZE + 16];
    snprintf(more, sizeof(more), "run --also q%s", text + 3);
    refuse(more, "run locks at most 16 names");
}

TEST(run_refuses_its_options_after_name)
{
    refuse("run deploy --ttl 3s make", "\"--ttl\" follows NAME; put options before NAME");
    refuse("run deploy --also b make", "\"--also\" follows NAME; put options before NAME");
    refuse("run deploy -n make", "\"-n\" follows NAME; put options before NAME");
}

TEST(names_and_tokens_may_begin_with_a_dash)
{
    struct line line;
    ck_assert_str_eq(accept(&line, "lock -- -x")->name, "-x");
    ck_assert_str_eq(accept(&line, "unlock -- -x -")->token, "-");
    ck_assert_str_eq(accept(&line, "unlock deploy -")->token, "-");
    ck_assert_ptr_null(accept(&line, "unlock deploy")->token);
    ck_assert_ptr_null(accept(&line, "locks")->name);
    ck_assert_str_eq(accept(&line, "locks deploy")->name, "deploy");
}

TEST(help_and_version_always_succeed)
{
    struct line line;
    ck_assert_str_eq(accept(&line, "lock --help")->topic, "lock");
    ck_assert_str_eq(line.options.command->name, "help");
    ck_assert_str_eq(accept(&line, "run -h deploy")->topic, "run");
    ck_assert_str_eq(accept(&line, "help run")->topic, "run");
    ck_assert_str_eq(accept(&line, "--help lock")->topic, "lock");
    ck_assert_ptr_null(accept(&line, "--help")->topic);
    ck_assert_ptr_null(accept(&line, "help")->topic);
    ck_assert_str_eq(accept(&line, "-V")->command->name, "version");
    ck_assert_str_eq(accept(&line, "version")->command->name, "version");
    ck_assert_str_eq(accept(&line, "lock --version")->command->name, "version");
    /* Words after NAME belong to the command. */
    ck_assert_str_eq(accept(&line, "run deploy make --help")->command->name, "run");
}

TEST(unknown_command_is_answered_with_a_similar_one)
{
    refuse("", "no command given");
    refuse("--json", "no command given");
    refuse("lokc deploy", "unknown command \"lokc\"; did you mean lock?");
    refuse("node", "unknown command \"node\"; did you mean nodes?");
    refuse("release deploy", "unknown command \"release\"; did you mean unlock?");
    refuse("relinquish", "unknown command \"relinquish\"");
    refuse("''", "unknown command \"\"");
}

TEST(unknown_option_is_answered_with_a_similar_one)
{
    refuse("lock --tll 3s a", "lock has no option \"--tll\"; did you mean --ttl?");
    refuse("lock --tll=3s a", "lock has no option \"--tll=3s\"; did you mean --ttl?");
    refuse("--jsno lock a", "redlock has no option \"--jsno\"; did you mean --json?");
    refuse("lock --immediately a", "lock has no option \"--immediately\"");
    /* Names of other tools, of which some are similar to an option with another meaning. */
    refuse("run --nowait a b", "run has no option \"--nowait\"; did you mean --nonblock?");
    refuse("lock --no-wait a", "lock has no option \"--no-wait\"; did you mean --nonblock?");
    refuse("run --nb a b", "run has no option \"--nb\"; did you mean --nonblock?");
    refuse("status --nowait a", "status has no option \"--nowait\"");
    refuse("lock --hold a", "lock has no option \"--hold\"");
    refuse("lock -x a", "lock has no option \"-x\"");
    refuse("lock -nx a", "lock has no option \"-x\"");
}

TEST(option_of_another_command_is_refused)
{
    refuse("status --ttl 3s a", "status takes no --ttl");
    refuse("--ttl 3s lock a", "--ttl must follow the command");
    refuse("lock -E 3 a", "lock takes no -E");
    refuse("status -q a", "status takes no -q");
    refuse("-n lock a", "-n must follow the command");
}

TEST(missing_or_superfluous_value_is_refused)
{
    refuse("lock a --ttl", "--ttl needs a value: --ttl T");
    refuse("lock a -w", "--wait needs a value: --wait T");
    refuse("ping --url=", "--url must not be empty");
    refuse("--url", "--url needs a value: --url URL");
    refuse("lock --fence=3 a", "--fence takes no value");
    refuse("lock --ttl 30 a", "--ttl: 30 has no unit: 30s or 30ms?");
    refuse("lock --ttl 0 a", "--ttl must be greater than 0");
    refuse("ping --timeout 0s", "--timeout must be greater than 0");
    refuse("run --on-lost KLIL a b", "--on-lost: \"KLIL\" is not a signal; did you mean KILL?");
    refuse("lock --slots 0 a", "--slots must be between 1 and 1000, not \"0\"");
    refuse("lock --slots 1001 a", "--slots must be between 1 and 1000, not \"1001\"");
    refuse("status --slots 3x a", "--slots must be between 1 and 1000, not \"3x\"");
    refuse("unlock --slots 3 a", "unlock takes no --slots");
    refuse("run -E 256 a b", "--conflict-exit must be between 0 and 255, not \"256\"");
    refuse("run -E -1 a b", "--conflict-exit must be between 0 and 255, not \"-1\"");
    refuse("lock -n -w 3s a", "--wait and --nonblock exclude each other");
}

TEST(missing_or_superfluous_operand_is_refused)
{
    refuse("lock", "lock needs a NAME");
    refuse("lock ''", "NAME must not be empty");
    refuse("unlock", "unlock needs a NAME");
    refuse("status a b", "unexpected argument \"b\"; usage: redlock status [--slots N] NAME");
    refuse("unlock a b c", "unexpected argument \"c\"; usage: redlock unlock NAME [TOKEN]");
    refuse("ping a", "unexpected argument \"a\"; usage: redlock ping");
    refuse("help a b", "unexpected argument \"b\"; usage: redlock help [COMMAND]");
    refuse("run a", "run needs a COMMAND after NAME");
    refuse("run a --", "run needs a COMMAND after NAME");
    refuse("run", "run needs a NAME");
    refuse("lock a\tb", "NAME must not contain spaces or control characters");
}

TEST(name_has_at_most_256_bytes)
{
    char text[LINE_SIZE] = "lock ";
    struct line line;
    memset(text + 5, 'x', 257);
    refuse(text, "NAME must have at most 256 bytes");
    text[5 + 256] = '\0';
    ck_assert_uint_eq(strlen(accept(&line, text)->name), 256);
}

TEST(json_option_applies_to_usage_errors)
{
    struct line line;
    ck_assert(parse(&line, "lock --nonsense a --json")->json);
    ck_assert(parse(&line, "--json lokc")->json);
    ck_assert(!parse(&line, "lock --nonsense -- --json")->json);
    ck_assert(!line.fine);
}

TEST(usage_of_each_command_lists_its_options)
{
    for (const struct command *command = commands; command->name != NULL; command++)
        for (unsigned id = 0; id < OPTION_COUNT; id++) {
            char word[32];
            snprintf(word, sizeof(word), "--%s", option_rules[id].word);
            ck_assert_msg((strstr(command->usage, word) != NULL) ==
                              ((command->options & OPTION_BIT(id)) != 0),
                          "%s %s", command->name, word);
        }
}
