/*
 * One line of the daemon -> its tag, its first word, and what is behind it. Pure.
 *
 * Strict: what no daemon sends is refused, since what it means can only be guessed.
 */
#ifndef CLIENT_C_ANSWER_H
#define CLIENT_C_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_TABLE(X)                                                                            \
    X(ANSWER_OK, "OK")                                                                             \
    X(ANSWER_GONE, "GONE")                                                                         \
    X(ANSWER_HELD, "HELD")                                                                         \
    X(ANSWER_FREE, "FREE")                                                                         \
    X(ANSWER_NOQUORUM, "NOQUORUM")                                                                 \
    X(ANSWER_LATE, "LATE")                                                                         \
    X(ANSWER_LIMIT, "LIMIT")                                                                       \
    X(ANSWER_SHUTDOWN, "SHUTDOWN")                                                                 \
    X(ANSWER_DENIED, "DENIED")                                                                     \
    X(ANSWER_ERR, "ERR")                                                                           \
    X(ANSWER_PONG, "PONG")                                                                         \
    X(ANSWER_VERSION, "VERSION")                                                                   \
    X(ANSWER_END, "END")                                                                           \
    X(ANSWER_PUSH, "!")

enum answer_word {
#define X(name, word) name,
    ANSWER_TABLE(X)
#undef X
        ANSWER_OTHER
};

/* Views of the line. */
struct word {
    const char *at;
    size_t len;
};

struct answer {
    struct word tag; /* without its #; at is NULL where there is none */
    struct word body;
    enum answer_word first; /* of the body */
    struct word rest;       /* of the body, behind its first word and a space */
};

/* A line without its LF. False: no daemon says this. */
__attribute__((warn_unused_result)) bool answer_read(const char *line, size_t len,
                                                     struct answer *answer);

/* Take the next word, up to a space, off the text. False: there is none, or an empty one. */
bool answer_take(struct word *text, struct word *word);

bool answer_is(struct word word, const char *text);

/* Plain digits, of a number up to most; the longest duration there is. */
#define ANSWER_MS_MAX INT64_C(999999999999999)
bool answer_number(struct word word, int64_t most, int64_t *number);

/* The digits of a token. */
bool answer_token(struct word word);

#endif
