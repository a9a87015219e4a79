/*
 * The words of the command line -> what is wanted. Pure but for getopt(3), whose state it resets.
 *
 * Options may stand before or behind the command; those of `run` end at NAME, since what follows
 * belongs to its COMMAND.
 */
#ifndef CLIENT_CLI_OPTIONS_H
#define CLIENT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/text.h"

struct command;

#define OPTION_TABLE(X)                                                                            \
    X(OPTION_TTL, "ttl", 0, "T", "how long the lock lives unless it is extended (30s)")            \
    X(OPTION_WAIT, "wait", 'w', "T", "wait in line for so long, not for as long as it takes")      \
    X(OPTION_NONBLOCK, "nonblock", 'n', NULL, "do not wait at all: the same as --wait 0")          \
    X(OPTION_FENCE, "fence", 0, NULL, "ask for a fencing token, too: a number that grows")         \
    X(OPTION_ON_LOST, "on-lost", 0, "SIGNAL", "what COMMAND gets when the lock is lost (TERM)")    \
    X(OPTION_GRACE, "grace", 0, "T", "after how long KILL follows that signal (10s)")              \
    X(OPTION_CONFLICT_EXIT, "conflict-exit", 'E', "N", "what to exit with if it is held (1)")      \
    X(OPTION_URL, "url", 0, "URL", "of the daemon ($REDLOCK_URL, or tcp://127.0.0.1:7335)")        \
    X(OPTION_SECRET_FILE, "secret-file", 0, "FILE", "with our secret ($REDLOCK_SECRET_FILE)")      \
    X(OPTION_TIMEOUT, "timeout", 0, "T", "how long an answer may take beyond a wait (5s)")         \
    X(OPTION_JSON, "json", 0, NULL, "results as one JSON object, a listing as an array")           \
    X(OPTION_HELP, "help", 'h', NULL, "what the command is for, and its options")                  \
    X(OPTION_VERSION, "version", 'V', NULL, "print the version")

enum option_id {
#define X(name, word, letter, argument, text) name,
    OPTION_TABLE(X)
#undef X
        OPTION_COUNT
};

struct option_rule {
    const char *word;
    char letter;          /* 0: none */
    const char *argument; /* NULL: it takes none */
    const char *text;
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
                   OPTION_BIT(OPTION_FENCE),
    OPTIONS_RUN = OPTIONS_LOCK | OPTION_BIT(OPTION_ON_LOST) | OPTION_BIT(OPTION_GRACE) |
                  OPTION_BIT(OPTION_CONFLICT_EXIT),
};

enum { WAIT_FOREVER = -1 };

/* The texts are those of the command line. */
struct options {
    const struct command *command; /* NULL: not known (only if the parsing failed) */
    unsigned given;                /* OPTION_BIT()s of all that stand there */

    const char *url;         /* NULL: not given */
    const char *secret_file; /* NULL: not given */
    int64_t timeout_ms;
    bool json;

    int64_t ttl_ms;
    int64_t wait_ms; /* WAIT_FOREVER: as long as it takes; 0: not at all */
    bool fence;

    int on_lost; /* a signal */
    int64_t grace_ms;
    int conflict_exit;

    const char *name;  /* NAME, a good one; NULL where it may be left out, and is */
    const char *token; /* TOKEN as it was given; NULL: it was left out */
    const char *topic; /* of help; NULL: all */
    char **argv;       /* COMMAND and its arguments; ends with NULL */
};

/* Fills *options. False: the error says what is wrong, without "redlock: " before it. argv[0] is
 * the program; the words may change their order. */
__attribute__((warn_unused_result)) bool
options_parse(int argc, char **argv, struct options *options, struct error *error);

#endif
