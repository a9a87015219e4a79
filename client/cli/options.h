/*
 * Parses the command line. Pure, except for the state of getopt(3), which it resets.
 *
 * Options may come before or after the command. For `run`, options end at NAME, because the words
 * after NAME belong to COMMAND.
 */
#ifndef CLIENT_CLI_OPTIONS_H
#define CLIENT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/text.h"

struct command;

#define OPTIONS_DEFAULT_URL "tcp://127.0.0.1:7335"

#define OPTION_TABLE(X)                                                                            \
    X(OPTION_TTL, "ttl", 0, "T", "time to live unless the lock is extended (30s)")                 \
    X(OPTION_WAIT, "wait", 'w', "T", "wait at most this long (no limit)")                          \
    X(OPTION_NONBLOCK, "nonblock", 'n', NULL, "do not wait; same as --wait 0")                     \
    X(OPTION_SLOTS, "slots", 0, "N", "NAME is a semaphore, which N clients may hold at once")      \
    X(OPTION_FENCE, "fence", 0, NULL, "get a fencing token, which rises with each grant")          \
    X(OPTION_QUIET, "quiet", 'q', NULL, "no message if another client holds the lock")             \
    X(OPTION_ON_LOST, "on-lost", 0, "SIGNAL", "signal for COMMAND if the lock is lost (TERM)")     \
    X(OPTION_GRACE, "grace", 0, "T", "time from that signal until KILL (10s)")                     \
    X(OPTION_CONFLICT_EXIT, "conflict-exit", 'E', "N",                                             \
      "exit status if the lock is held (1; 124 after a wait)")                                     \
    X(OPTION_ALSO, "also", 0, "NAME", "lock this name too; may be given more than once")           \
    X(OPTION_URL, "url", 0, "URL", "daemon address ($REDLOCK_URL, or tcp://127.0.0.1:7335)")       \
    X(OPTION_SECRET_FILE, "secret-file", 0, "FILE", "file with the secret ($REDLOCK_SECRET_FILE)") \
    X(OPTION_TIMEOUT, "timeout", 0, "T", "time limit for an answer, without the wait (5s)")        \
    X(OPTION_JSON, "json", 0, NULL, "print the result as JSON; a listing as an array")             \
    X(OPTION_HELP, "help", 'h', NULL, "describe the command and its options")                      \
    X(OPTION_VERSION, "version", 'V', NULL, "print the version")

enum option_id {
#define X(name, word, letter, argument, text) name,
    OPTION_TABLE(X)
#undef X
        OPTION_COUNT
};

struct option_rule {
    const char *word;
    char letter;          /* 0: no short form */
    const char *argument; /* name of its value; NULL: it takes none */
    const char *text;     /* for the help */
};
extern const struct option_rule option_rules[OPTION_COUNT]; /* command.c */

/* Sets of options. */
#define OPTION_BIT(id) (1u << (id))
enum {
    OPTIONS_DAEMON =
        OPTION_BIT(OPTION_URL) | OPTION_BIT(OPTION_SECRET_FILE) | OPTION_BIT(OPTION_TIMEOUT),
    OPTIONS_EVERYWHERE = OPTIONS_DAEMON | OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_HELP) |
                         OPTION_BIT(OPTION_VERSION),
    OPTIONS_LOCK = OPTION_BIT(OPTION_TTL) | OPTION_BIT(OPTION_WAIT) | OPTION_BIT(OPTION_NONBLOCK) |
                   OPTION_BIT(OPTION_SLOTS) | OPTION_BIT(OPTION_FENCE) | OPTION_BIT(OPTION_QUIET),
    OPTIONS_RUN = OPTIONS_LOCK | OPTION_BIT(OPTION_ON_LOST) | OPTION_BIT(OPTION_GRACE) |
                  OPTION_BIT(OPTION_CONFLICT_EXIT) | OPTION_BIT(OPTION_ALSO),
};

enum { WAIT_FOREVER = -1, CONFLICT_EXIT_DEFAULT = -1 };

enum { NAMES_MAX = 16 }; /* NAME and those of --also */

/* All strings point into the command line. */
struct options {
    const struct command *command; /* NULL only after a parse error: unknown or missing */
    unsigned given;                /* OPTION_BIT()s of the options on the command line */

    const char *url;         /* NULL: not given */
    const char *secret_file; /* NULL: not given */
    int64_t timeout_ms;
    bool json;

    int64_t ttl_ms;
    int64_t wait_ms; /* WAIT_FOREVER: no limit; 0: do not wait */
    int slots;       /* 0: not given */
    bool fence;
    bool quiet; /* no message if another client holds the lock; JSON is printed all the same */

    int on_lost; /* signal number */
    int64_t grace_ms;
    int conflict_exit; /* CONFLICT_EXIT_DEFAULT: EXIT_HELD, or EXIT_WAITED after a wait */

    /* With --also, `name` is the first of all names in byte order, and `also` has the others in
     * that order. The names are valid, and differ. */
    const char *name; /* NAME; NULL: none was given */
    const char *also[NAMES_MAX - 1];
    unsigned also_count;

    const char *token; /* TOKEN, not checked; NULL: none was given */
    const char *topic; /* the command that help describes; NULL: list all commands */
    char **argv;       /* COMMAND and its arguments; ends with NULL */
};

/* Fills *options. False: the error says what is wrong, without "redlock: " in front. argv[0] is the
 * program; getopt(3) may reorder the other words. */
__attribute__((warn_unused_result)) bool
options_parse(int argc, char **argv, struct options *options, struct error *error);

#endif
