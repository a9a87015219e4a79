/*
 * `redlock help`, from the tables of commands and options; and `redlock version`.
 */
#include <stdio.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/exits.h"
#include "protocol/text.h"

enum { NAME_WIDTH = 9, OPTION_WIDTH = 23, QUOTED_MAX = 40 };

static void print_option(const struct option_rule *rule, int width)
{
    char left[64];
    char letter[] = "-x, ";
    letter[1] = rule->letter;
    snprintf(left, sizeof(left), "%s--%s%s%s", rule->letter != 0 ? letter : "    ", rule->word,
             rule->argument != NULL ? " " : "", rule->argument != NULL ? rule->argument : "");
    printf("  %-*s %s\n", width, left, rule->text);
}

static void print_options(unsigned options)
{
    for (unsigned id = 0; id < OPTION_COUNT; id++)
        if (options & OPTION_BIT(id))
            print_option(&option_rules[id], OPTION_WIDTH);
}

static void print_all(void)
{
    fputs("usage: redlock [OPTIONS] COMMAND ...\n"
          "Locks by redlockd, for shells and scripts.\n"
          "\n",
          stdout);
    for (const struct command *command = commands; command->name != NULL; command++)
        printf("  %-*s%s\n", NAME_WIDTH, command->name, command->text);
    putchar('\n');
    print_options(OPTION_BIT(OPTION_URL) | OPTION_BIT(OPTION_SECRET_FILE) |
                  OPTION_BIT(OPTION_TIMEOUT) | OPTION_BIT(OPTION_JSON));
    fputs("\n"
          "T: 30s, 500ms. Exits: 1 held, 124 so after a wait, 123 no quorum, 125 failure.\n"
          "Try it:  redlockd --dev   and then   redlock run deploy -- date\n",
          stdout);
}

static void print_command(const struct command *command)
{
    const char *text = command->text;
    printf("usage: redlock %s%s%s\n\n", command->name, command->usage[0] != '\0' ? " " : "",
           command->usage);
    printf("%c%s%s\n", text[0] >= 'a' && text[0] <= 'z' ? text[0] - 'a' + 'A' : text[0], text + 1,
           text[strlen(text) - 1] == '?' ? "" : ".");
    fputs(command->more, stdout);
    putchar('\n');
    unsigned common = OPTION_BIT(OPTION_HELP);
    bool is_help = strcmp(command->name, "help") == 0;
    if (!is_help)
        common |= OPTION_BIT(OPTION_JSON);
    if (!is_help && strcmp(command->name, "version") != 0)
        common |=
            OPTION_BIT(OPTION_URL) | OPTION_BIT(OPTION_SECRET_FILE) | OPTION_BIT(OPTION_TIMEOUT);
    print_options(command->options | common);
}

/* What is right is told by the help of all, not by that of help. */
static int refuse(const struct options *options, const char *what)
{
    struct options nowhere = *options;
    nowhere.command = NULL;
    return report_wrong(&nowhere, what);
}

static int fail_unknown(const struct options *options)
{
    char what[256] = "";
    struct text text = {.buf = what, .size = sizeof(what) - 1};
    const char *meant = command_nearest(options->topic);
    text_string(&text, "no command ");
    text_quoted(&text, options->topic, strlen(options->topic), QUOTED_MAX);
    if (meant != NULL) {
        text_string(&text, "; did you mean ");
        text_string(&text, meant);
        text_string(&text, "?");
    }
    return refuse(options, what);
}

int command_help(const struct options *options)
{
    const struct command *command;
    if (options->json)
        return refuse(options, "help is text for people: leave --json out");
    if (options->topic == NULL) {
        print_all();
        return EXIT_DONE;
    }
    command = command_find(options->topic);
    if (command == NULL)
        return fail_unknown(options);
    print_command(command);
    return EXIT_DONE;
}

int command_version(const struct options *options)
{
    if (!options->json) {
        puts("redlock " REDLOCK_VERSION);
        return EXIT_DONE;
    }
    struct json json = report_begin(redlock_status_word(REDLOCK_OK));
    json_text(&json, "version", REDLOCK_VERSION);
    report_end(&json);
    return EXIT_DONE;
}
