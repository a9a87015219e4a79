#include "client/cli/options.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/redlock.h"
#include "client/cli/command.h"
#include "client/cli/duration.h"
#include "client/cli/signals.h"
#include "protocol/limits.h"
#include "protocol/suggest.h"

enum { QUOTED_MAX = 40, QUOTED_SIZE = 4 * QUOTED_MAX + 8, LETTERS_SIZE = 2 * OPTION_COUNT + 4 };

/* getopt_long(3) returns FIRST_VALUE + id for a long option, which is never a letter. */
enum { FIRST_VALUE = 256 };

struct parser {
    struct options *options;
    struct error *error;
    unsigned allowed; /* OPTION_BIT()s that may appear at this position */
    char quoted[QUOTED_SIZE];
};

/* --- errors --- */

/* Quotes a word of the command line for a message. */
static const char *quote(struct parser *parser, const char *word)
{
    struct text text = {.buf = parser->quoted, .size = QUOTED_SIZE - 1};
    text_quoted(&text, word, strlen(word), QUOTED_MAX);
    parser->quoted[text.len] = '\0';
    return parser->quoted;
}

static const char *command_name(const struct parser *parser)
{
    return parser->options->command != NULL ? parser->options->command->name : "redlock";
}

/* The option exists, but not at this position or for this command. */
static bool fail_misplaced(struct parser *parser, const char *word)
{
    return parser->options->command == NULL
               ? error_set(parser->error, "%s must follow the command", word)
               : error_set(parser->error, "%s takes no %s", command_name(parser), word);
}

/* Names that other tools use for these options. */
static const struct {
    const char *word;
    enum option_id meant;
} option_aliases[] = {
    {"nb", OPTION_NONBLOCK},
    {"nowait", OPTION_NONBLOCK},
    {"no-wait", OPTION_NONBLOCK},
};

/* The allowed option with this meaning or a similar name, or NULL. */
static const char *nearest_option(const struct parser *parser, const char *word)
{
    const char *words[OPTION_COUNT + 1] = {NULL};
    unsigned count = 0;
    for (size_t i = 0; i < sizeof(option_aliases) / sizeof(option_aliases[0]); i++)
        if (strcmp(option_aliases[i].word, word) == 0 &&
            parser->allowed & OPTION_BIT(option_aliases[i].meant))
            return option_rules[option_aliases[i].meant].word;
    for (unsigned id = 0; id < OPTION_COUNT; id++)
        if (parser->allowed & OPTION_BIT(id))
            words[count++] = option_rules[id].word;
    return suggest_nearest(word, words);
}

static bool fail_unknown(struct parser *parser, const char *word)
{
    char name[QUOTED_MAX] = "";
    /* "--tll=30s": the name ends at the "=". */
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    for (unsigned id = 0; id < OPTION_COUNT; id++)
        if (strcmp(option_rules[id].word, name + 2) == 0)
            return fail_misplaced(parser, name);
    const char *meant = nearest_option(parser, name + 2);
    return error_set(parser->error, "%s has no option %s%s%s%s", command_name(parser),
                     quote(parser, word), meant != NULL ? "; did you mean --" : "",
                     meant != NULL ? meant : "", meant != NULL ? "?" : "");
}

static bool fail_letter(struct parser *parser, char letter)
{
    const char word[] = {'-', letter, '\0'};
    for (unsigned id = 0; id < OPTION_COUNT; id++)
        if (option_rules[id].letter == letter)
            return fail_misplaced(parser, word);
    return error_set(parser->error, "%s has no option %s", command_name(parser),
                     quote(parser, word));
}

/* getopt_long(3) has rejected this word. */
static bool fail_option(struct parser *parser, int found, const char *word)
{
    const struct option_rule *rule = NULL;
    for (unsigned id = 0; id < OPTION_COUNT; id++)
        if (optopt == FIRST_VALUE + (int)id || (optopt != 0 && optopt == option_rules[id].letter &&
                                                (parser->allowed & OPTION_BIT(id)) != 0))
            rule = &option_rules[id];
    if (rule != NULL && found == ':')
        return error_set(parser->error, "--%s needs a value: --%s %s", rule->word, rule->word,
                         rule->argument);
    if (rule != NULL)
        return error_set(parser->error, "--%s takes no value", rule->word);
    if (optopt == 0)
        return fail_unknown(parser, word);
    return fail_letter(parser, (char)optopt);
}

/* --- options --- */

static bool take_duration(struct parser *parser, enum option_id id, const char *text,
                          int64_t least_ms, int64_t *ms)
{
    struct error why;
    if (!duration_parse(text, ms, &why))
        return error_set(parser->error, "--%s: %s", option_rules[id].word, why.text);
    if (*ms < least_ms)
        return error_set(parser->error, "--%s must be greater than 0", option_rules[id].word);
    return true;
}

static bool take_number(struct parser *parser, const char *option, const char *text, int least,
                        int most, int *number)
{
    size_t digits = strspn(text, "0123456789");
    long value = strtol(text, NULL, 10);
    if (digits == 0 || digits > (most < 1000 ? 3 : 4) || text[digits] != '\0' || value < least ||
        value > most)
        return error_set(parser->error, "--%s must be between %d and %d, not %s", option, least,
                         most, quote(parser, text));
    *number = (int)value;
    return true;
}

/* what: the name of the operand or option, for the message. */
static bool check_name(struct parser *parser, const char *what, const char *name)
{
    if (name[0] == '\0')
        return error_set(parser->error, "%s must not be empty", what);
    if (strlen(name) > REDLOCK_RESOURCE_MAX)
        return error_set(parser->error, "%s must have at most %d bytes", what,
                         REDLOCK_RESOURCE_MAX);
    for (const char *at = name; *at != '\0'; at++)
        if ((unsigned char)*at <= 0x20 || *at == 0x7f)
            return error_set(parser->error, "%s must not contain spaces or control characters",
                             what);
    return true;
}

static bool take_also(struct parser *parser, const char *name)
{
    struct options *options = parser->options;
    if (options->also_count == NAMES_MAX - 1)
        return error_set(parser->error, "run locks at most %d names", NAMES_MAX);
    options->also[options->also_count++] = name;
    return check_name(parser, "--also", name);
}

static bool take_option(struct parser *parser, enum option_id id, const char *text)
{
    struct options *options = parser->options;
    struct error why;
    options->given |= OPTION_BIT(id);
    switch (id) {
    case OPTION_TTL:
        return take_duration(parser, id, text, 1, &options->ttl_ms);
    case OPTION_WAIT:
        return take_duration(parser, id, text, 0, &options->wait_ms);
    case OPTION_NONBLOCK:
        options->wait_ms = 0;
        return true;
    case OPTION_SLOTS:
        return take_number(parser, "slots", text, 1, LIMIT_SLOTS, &options->slots);
    case OPTION_FENCE:
        options->fence = true;
        return true;
    case OPTION_QUIET:
        options->quiet = true;
        return true;
    case OPTION_ON_LOST:
        return signal_parse(text, &options->on_lost, &why) ||
               error_set(parser->error, "--on-lost: %s", why.text);
    case OPTION_GRACE:
        return take_duration(parser, id, text, 0, &options->grace_ms);
    case OPTION_CONFLICT_EXIT:
        return take_number(parser, "conflict-exit", text, 0, 255, &options->conflict_exit);
    case OPTION_ALSO:
        return take_also(parser, text);
    case OPTION_URL:
        options->url = text;
        return text[0] != '\0' || error_set(parser->error, "--url must not be empty");
    case OPTION_SECRET_FILE:
        options->secret_file = text;
        return text[0] != '\0' || error_set(parser->error, "--secret-file must not be empty");
    case OPTION_TIMEOUT:
        return take_duration(parser, id, text, 1, &options->timeout_ms);
    case OPTION_JSON:
        options->json = true;
        return true;
    case OPTION_HELP:
    case OPTION_VERSION:
    case OPTION_COUNT:
        break;
    }
    return true;
}

/* Builds the tables for getopt_long(3). The letters begin with '+' if options end at the first
 * operand. */
static void describe(const struct parser *parser, bool end_at_word,
                     struct option longs[OPTION_COUNT + 1], char letters[LETTERS_SIZE])
{
    unsigned count = 0;
    size_t len = 0;
    if (end_at_word)
        letters[len++] = '+';
    letters[len++] = ':';
    for (unsigned id = 0; id < OPTION_COUNT; id++) {
        const struct option_rule *rule = &option_rules[id];
        int argument = rule->argument != NULL ? required_argument : no_argument;
        if ((parser->allowed & OPTION_BIT(id)) == 0)
            continue;
        longs[count++] = (struct option){rule->word, argument, NULL, FIRST_VALUE + (int)id};
        if (rule->letter == 0)
            continue;
        letters[len++] = rule->letter;
        if (argument == required_argument)
            letters[len++] = ':';
    }
    longs[count] = (struct option){0};
    letters[len] = '\0';
}

static enum option_id id_of(int found)
{
    unsigned id = 0;
    if (found >= FIRST_VALUE)
        return (enum option_id)(found - FIRST_VALUE);
    while (id < OPTION_COUNT && option_rules[id].letter != found)
        id++;
    return (enum option_id)id;
}

/* Leaves optind at the first operand. */
static bool take_options(struct parser *parser, int argc, char **argv, bool end_at_word)
{
    struct option longs[OPTION_COUNT + 1];
    char letters[LETTERS_SIZE];
    int found;
    describe(parser, end_at_word, longs, letters);
    opterr = 0;
    optind = 0; /* resets getopt_long(3) */
    while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (found == '?' || found == ':')
            return fail_option(parser, found, argv[optind - 1]);
        if (!take_option(parser, id_of(found), optarg))
            return false;
    }
    unsigned both = OPTION_BIT(OPTION_WAIT) | OPTION_BIT(OPTION_NONBLOCK);
    if ((parser->options->given & both) == both)
        return error_set(parser->error, "--wait and --nonblock exclude each other");
    both = OPTION_BIT(OPTION_SLOTS) | OPTION_BIT(OPTION_ALSO);
    if ((parser->options->given & both) == both)
        return error_set(parser->error, "--slots and --also exclude each other");
    return true;
}

/* --- operands --- */

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Byte order is the same for all users, so that no two commands wait for each other. */
static bool order_names(struct parser *parser)
{
    struct options *options = parser->options;
    const char *names[NAMES_MAX] = {options->name};
    memcpy(names + 1, options->also, options->also_count * sizeof(*names));
    qsort(names, options->also_count + 1, sizeof(*names), compare_names);
    for (unsigned i = 0; i < options->also_count; i++)
        if (strcmp(names[i], names[i + 1]) == 0)
            return error_set(parser->error, "--also: the name %s is given twice",
                             quote(parser, names[i]));
    options->name = names[0];
    memcpy(options->also, names + 1, options->also_count * sizeof(*names));
    return true;
}

static bool take_name(struct parser *parser, const char *name)
{
    parser->options->name = name;
    return check_name(parser, "NAME", name) && order_names(parser);
}

/* COMMAND and its arguments follow NAME. */
static bool take_argv(struct parser *parser, char **argv)
{
    if (argv[0] != NULL && strcmp(argv[0], "--") == 0)
        argv++;
    else if (argv[0] != NULL && argv[0][0] == '-')
        return error_set(parser->error, "%s follows NAME; put options before NAME",
                         quote(parser, argv[0]));
    if (argv[0] == NULL)
        return error_set(parser->error, "run needs a COMMAND after NAME");
    parser->options->argv = argv;
    return true;
}

static bool fail_superfluous(struct parser *parser, const char *word)
{
    const struct command *command = parser->options->command;
    return error_set(parser->error, "unexpected argument %s; usage: redlock %s%s%s",
                     quote(parser, word), command->name, command->usage[0] != '\0' ? " " : "",
                     command->usage);
}

static bool take_operands(struct parser *parser, int count, char **words)
{
    const struct command *command = parser->options->command;
    bool named = command->operands != OPERANDS_NONE && command->operands != OPERANDS_TOPIC;
    bool optional = command->operands == OPERANDS_MAYBE_NAME;
    int most = command->operands == OPERANDS_NONE ? 0 : 1;
    if (named && count == 0)
        return optional || error_set(parser->error, "%s needs a NAME", command->name);
    if (named && !take_name(parser, words[0]))
        return false;
    if (command->operands == OPERANDS_NAME_COMMAND)
        return take_argv(parser, words + 1);
    if (command->operands == OPERANDS_NAME_TOKEN) {
        most = 2;
        parser->options->token = count > 1 ? words[1] : NULL;
    }
    if (command->operands == OPERANDS_TOPIC)
        parser->options->topic = count > 0 ? words[0] : NULL;
    return count <= most || fail_superfluous(parser, words[most]);
}

/* --- the command line --- */

/* --help and --version replace the command on the command line, and need no operands. */
static bool take_help_or_version(const struct parser *parser, const char *word)
{
    struct options *options = parser->options;
    if (options->given & OPTION_BIT(OPTION_HELP)) {
        options->topic = options->command != NULL ? options->command->name : word;
        options->command = command_find("help", parser->error);
        return true;
    }
    if (options->given & OPTION_BIT(OPTION_VERSION)) {
        options->command = command_find("version", parser->error);
        return true;
    }
    return false;
}

static bool parse(struct parser *parser, int argc, char **argv)
{
    parser->allowed = OPTIONS_EVERYWHERE;
    if (!take_options(parser, argc, argv, true))
        return false;
    if (take_help_or_version(parser, argv[optind]))
        return true;
    if (optind >= argc)
        return error_set(parser->error, "no command given");
    argc -= optind;
    argv += optind;
    const struct command *command = command_find(argv[0], parser->error);
    if (command == NULL)
        return false;
    parser->options->command = command;
    parser->allowed |= command->options;
    if (!take_options(parser, argc, argv, command->operands == OPERANDS_NAME_COMMAND))
        return false;
    return take_help_or_version(parser, NULL) ||
           take_operands(parser, argc - optind, argv + optind);
}

/* A parse error before --json must be printed as JSON too, so look for --json separately. */
static bool has_json(char *const *argv)
{
    while (*argv != NULL && strcmp(*argv, "--") != 0 && strcmp(*argv, "--json") != 0)
        argv++;
    return *argv != NULL && strcmp(*argv, "--json") == 0;
}

bool options_parse(int argc, char **argv, struct options *options, struct error *error)
{
    struct parser parser = {.options = options, .error = error};
    *options = (struct options){
        .timeout_ms = 5000,
        .ttl_ms = 30000,
        .wait_ms = WAIT_FOREVER,
        .on_lost = SIGTERM,
        .grace_ms = 10000,
        .conflict_exit = CONFLICT_EXIT_DEFAULT,
    };
    if (parse(&parser, argc, argv))
        return true;
    options->json = options->json || has_json(argv);
    return false;
}
