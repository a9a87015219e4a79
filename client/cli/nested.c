#include "client/cli/nested.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This program, even if its file has been replaced meanwhile. */
static const char program[] = "/proc/self/exe";

/* All words but those of COMMAND: the program and "run", three flags, six options with a number,
 * "--also" and a name for each further lock, and NAME between two "--". */
enum { WORDS_MAX = 2 + 3 + 6 + 2 * NAMES_MAX + 3 };

struct words {
    char **argv;
    size_t count;
    bool failed; /* out of memory */
};

static void add(struct words *words, const char *word)
{
    char *copy = strdup(word);
    if (copy == NULL)
        words->failed = true;
    else
        words->argv[words->count++] = copy;
}

static void add_number(struct words *words, const char *option, int64_t number, const char *unit)
{
    char word[64];
    snprintf(word, sizeof(word), "--%s=%" PRId64 "%s", option, number, unit);
    add(words, word);
}

static void add_options(struct words *words, const struct options *options)
{
    if (options->json)
        add(words, "--json");
    if (options->fence)
        add(words, "--fence");
    if (options->quiet)
        add(words, "--quiet");
    /* Only the default TTL adapts to the daemon's max_ttl. */
    if (options->given & OPTION_BIT(OPTION_TTL))
        add_number(words, "ttl", options->ttl_ms, "ms");
    if (options->wait_ms != WAIT_FOREVER)
        add_number(words, "wait", options->wait_ms, "ms");
    add_number(words, "timeout", options->timeout_ms, "ms");
    add_number(words, "on-lost", options->on_lost, "");
    add_number(words, "grace", options->grace_ms, "ms");
    if (options->conflict_exit != CONFLICT_EXIT_DEFAULT)
        add_number(words, "conflict-exit", options->conflict_exit, "");
}

void nested_free(char **argv)
{
    for (size_t i = 0; argv != NULL && argv[i] != NULL; i++)
        free(argv[i]);
    free(argv);
}

char **nested_argv(const struct options *options)
{
    size_t command_count = 0;
    assert(options->also_count > 0);
    while (options->argv[command_count] != NULL)
        command_count++;
    struct words words = {.argv = calloc(WORDS_MAX + command_count + 1, sizeof(*words.argv))};
    if (words.argv == NULL)
        return NULL;
    add(&words, program);
    add(&words, "run");
    add_options(&words, options);
    for (unsigned i = 1; i < options->also_count; i++) {
        add(&words, "--also");
        add(&words, options->also[i]);
    }
    add(&words, "--");
    add(&words, options->also[0]);
    add(&words, "--");
    for (size_t i = 0; i < command_count; i++)
        add(&words, options->argv[i]);
    if (!words.failed)
        return words.argv;
    nested_free(words.argv);
    return NULL;
}
