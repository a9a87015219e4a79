#include "client/cli/command.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/report.h"
#include "protocol/suggest.h"

enum { NAME_WIDTH = 9, OPTION_WIDTH = 23, QUOTED_MAX = 40 };

static int help(const struct options *options);
static int version(const struct options *options);

#define TOKEN_HELP                                                                                 \
    "TOKEN is the token that lock printed, or its whole output as one word. With -,\n"             \
    "it is read from standard input; without TOKEN, from $REDLOCK_TOKEN. Both ways\n"              \
    "hide it from other users of this machine. For a slot, NAME is that of the slot,\n"            \
    "NAME#K; or that of the semaphore, with the whole output of lock.\n"

const struct command commands[] = {
    {"run", command_run,
     "[--ttl T] [--wait T | --nonblock] [--slots N] [--fence]\n"
     "                   [--quiet] [--on-lost SIGNAL] [--grace T] [--conflict-exit N]\n"
     "                   [--also NAME]... NAME [--] COMMAND [ARGS...]",
     "run a command while holding a lock", OPERANDS_NAME_COMMAND, OPTIONS_RUN,
     "Exit status: that of COMMAND; 128+n if signal n ended it; 122 if the lock was\n"
     "lost: COMMAND is stopped, with all its processes. Runs for at most max_hold of\n"
     "the daemon. Sets REDLOCK_RESOURCE, _TOKEN, _DEADLINE_MS, _URL, _HELD, _FENCE.\n"},
    {"lock", command_lock,
     "[--ttl T] [--wait T | --nonblock] [--slots N] [--fence]\n"
     "                    [--quiet] NAME",
     "acquire a lock and print its token", OPERANDS_NAME, OPTIONS_LOCK,
     "Prints TOKEN, then with --fence FENCE, then with --slots the name of the slot,\n"
     "NAME#K. The lock is not extended; it expires after --ttl.\n"
     "Example:  lock=$(redlock lock deploy) && make; redlock unlock deploy \"$lock\"\n"},
    {"unlock", command_unlock, "NAME [TOKEN]", "release a lock", OPERANDS_NAME_TOKEN, 0,
     TOKEN_HELP "Exits with 1 if the token does not hold the lock.\n"},
    {"extend", command_extend, "[--ttl T] NAME [TOKEN]", "extend a lock to live for --ttl from now",
     OPERANDS_NAME_TOKEN, OPTION_BIT(OPTION_TTL),
     TOKEN_HELP "Prints for how long the lock is held at least. An extension never shortens a\n"
                "lock. Exits with 1 if the token does not hold the lock.\n"},
    {"status", command_status, "[--slots N] NAME", "show whether a lock is held", OPERANDS_NAME,
     OPTION_BIT(OPTION_SLOTS),
     "Prints free, or held and the time before which the lock cannot expire, if known.\n"
     "With --slots, prints free or held, and how many of the slots are held; without\n"
     "it, says nothing about the slots of NAME.\n"
     "The answer may be outdated when you read it: to get the lock, use lock.\n"},
    {"break", command_break, "NAME", "release a lock by force, without its token", OPERANDS_NAME, 0,
     "For operators; the daemon must allow it. The holder is not stopped: it works on\n"
     "until its next extension fails. Prints free if no client held the lock. Exits\n"
     "with 1 if the lock was not released: it changed hands, or is not a lock of\n"
     "redlockd.\n"},
    {"locks", command_listing, "[NAME]", "list the locks and how many clients wait for each",
     OPERANDS_MAYBE_NAME, 0, "Lists the locks that this daemon has granted or has waiters for.\n"},
    {"nodes", command_listing, "", "list the masters and why a master has no vote", OPERANDS_NONE,
     0, ""},
    {"clients", command_listing, "", "list the connections of the daemon", OPERANDS_NONE, 0, ""},
    {"stats", command_listing, "", "list the daemon's counters since its start", OPERANDS_NONE, 0,
     ""},
    {"ping", command_ping, "", "check that the daemon answers", OPERANDS_NONE, 0, ""},
    {"help", help, "[COMMAND]", "list the commands, or describe one", OPERANDS_TOPIC, 0, ""},
    {"version", version, "", "print the version", OPERANDS_NONE, 0, ""},
    {0},
};

const struct option_rule option_rules[OPTION_COUNT] = {
#define X(name, word, letter, argument, text) [name] = {word, letter, argument, text},
    OPTION_TABLE(X)
#undef X
};

/* --- lookup --- */

/* Names that other tools use for these commands. */
static const struct {
    const char *name;
    const char *meant;
} aliases[] = {
    {"acquire", "lock"}, {"exec", "run"},     {"info", "stats"},     {"list", "locks"},
    {"ls", "locks"},     {"renew", "extend"}, {"release", "unlock"},
};

/* The command with a similar name, or NULL. */
static const char *nearest(const char *name)
{
    const char *names[sizeof(commands) / sizeof(commands[0])] = {NULL};
    for (unsigned i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
        if (strcmp(aliases[i].name, name) == 0)
            return aliases[i].meant;
    for (unsigned i = 0; commands[i].name != NULL; i++)
        names[i] = commands[i].name;
    return suggest_nearest(name, names);
}

const struct command *command_find(const char *name, struct error *error)
{
    for (const struct command *command = commands; command->name != NULL; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    struct text text = error_begin(error);
    const char *meant = nearest(name);
    text_string(&text, "unknown command ");
    text_quoted(&text, name, strlen(name), QUOTED_MAX);
    text_string(&text, meant != NULL ? "; did you mean " : "");
    text_string(&text, meant != NULL ? meant : "");
    text_string(&text, meant != NULL ? "?" : "");
    return NULL;
}

/* --- help and version --- */

static void print_options(unsigned options)
{
    for (unsigned id = 0; id < OPTION_COUNT; id++) {
        const struct option_rule *rule = &option_rules[id];
        char left[64];
        char letter[] = "-x, ";
        letter[1] = rule->letter;
        if ((options & OPTION_BIT(id)) == 0)
            continue;
        snprintf(left, sizeof(left), "%s--%s%s%s", rule->letter != 0 ? letter : "    ", rule->word,
                 rule->argument != NULL ? " " : "", rule->argument != NULL ? rule->argument : "");
        printf("  %-*s %s\n", OPTION_WIDTH, left, rule->text);
    }
}

static void print_all(void)
{
    fputs("usage: redlock [OPTIONS] COMMAND ...\n"
          "Distributed locks from redlockd, for shells and scripts.\n"
          "\n",
          stdout);
    for (const struct command *command = commands; command->name != NULL; command++)
        printf("  %-*s%s\n", NAME_WIDTH, command->name, command->text);
    putchar('\n');
    print_options(OPTIONS_DAEMON | OPTION_BIT(OPTION_JSON));
    fputs("\n"
          "T: 30s, 500ms. Exit: 1 held, 124 held after wait, 123 no quorum, 125 failure.\n"
          "Try it:  redlockd --dev   and then   redlock run deploy -- date\n",
          stdout);
}

static void print_command(const struct command *command)
{
    const char *text = command->text;
    printf("usage: redlock %s%s%s\n\n", command->name, command->usage[0] != '\0' ? " " : "",
           command->usage);
    printf("%c%s.\n", text[0] >= 'a' && text[0] <= 'z' ? text[0] - 'a' + 'A' : text[0], text + 1);
    fputs(command->more, stdout);
    putchar('\n');
    unsigned common = OPTION_BIT(OPTION_HELP);
    bool is_help = strcmp(command->name, "help") == 0;
    if (!is_help)
        common |= OPTION_BIT(OPTION_JSON);
    if (!is_help && strcmp(command->name, "version") != 0)
        common |= OPTIONS_DAEMON;
    print_options(command->options | common);
}

/* Reports an error without a command, so that the message points to the list of all commands and
 * not to the help of `help`. */
static int fail_help(const struct options *options, const char *what)
{
    struct options nowhere = *options;
    nowhere.command = NULL;
    return report_wrong(&nowhere, what);
}

static int help(const struct options *options)
{
    struct error error;
    if (options->json)
        return fail_help(options, "help has no JSON output; omit --json");
    if (options->topic == NULL) {
        print_all();
        return EXIT_DONE;
    }
    const struct command *command = command_find(options->topic, &error);
    if (command == NULL)
        return fail_help(options, error.text);
    print_command(command);
    return EXIT_DONE;
}

static int version(const struct options *options)
{
    if (!options->json) {
        puts("redlock " REDLOCK_VERSION);
        return EXIT_DONE;
    }
    struct json json = report_begin(options, REDLOCK_OK);
    json_text(&json, "version", REDLOCK_VERSION);
    report_end(&json);
    return EXIT_DONE;
}
