/*
 * A daemon that lies: a thread that speaks the protocol, or nearly, and keeps what it was asked and
 * what it has said, byte for byte. It serves one connection after the other.
 */
#ifndef TESTS_E2E_LIAR_H
#define TESTS_E2E_LIAR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/dice.h"

enum { LIAR_LINES = 4096, LIAR_BYTES = 1 << 20, LIAR_LINE = 4096 };

enum lie_kind {
    LIE_NONE,
    LIE_CUT,    /* the answer up to `at`, and the end of the connection */
    LIE_SPLIT,  /* the answer in two pieces, cut there */
    LIE_SILENT, /* no answer */
    LIE_FLOOD,  /* warnings, or lines of NODES, without end, and no answer */
    LIE_RANDOM, /* anything, by the seed */
};

/* How it answers. */
struct lie {
    enum lie_kind kind;
    size_t at;
    uint64_t seed;
    int delay_ms;        /* before each answer */
    int64_t validity_ms; /* of a grant; 0: the ttl that is asked for */
    int64_t elapsed_ms;
    const char *instead; /* the answer to LOCK, EXTEND and LOCKS, behind its tag */
    const char *before;  /* whole lines that come before each answer */
};

struct liar {
    pthread_t thread;
    int listening;
    int bell[2]; /* closed to have the thread end */
    const char *path;
    pthread_mutex_t mutex;
    /* Below: by the mutex. */
    struct lie lie;
    struct dice dice;
    unsigned tokens;
    unsigned connections;
    struct {
        uint64_t id; /* the number that is its tag */
        int64_t seen_ns;
        char text[512];
    } asked[LIAR_LINES];
    unsigned asked_count;
    char said[LIAR_BYTES]; /* ends with NUL; what was said to one connection is ended by LF */
    size_t said_len;
};

void liar_start(struct liar *liar, const char *path);
void liar_stop(struct liar *liar);

/* From now on it lies like this; what it was asked and has said is forgotten. */
void liar_set(struct liar *liar, const struct lie *lie);

/* Has it been asked this? The text begins behind the tag. */
bool liar_was_asked(struct liar *liar, const char *text);

/* What it was asked with this number, and when it had read that. */
bool liar_request(struct liar *liar, uint64_t id, char *text, int64_t *seen_ns);

/* The lines with this tag that it has said so far, each passed on behind the tag. */
void liar_each_answer(struct liar *liar, uint64_t id, void (*line)(void *context, const char *text),
                      void *context);

/* Nanoseconds of CLOCK_BOOTTIME. */
int64_t liar_clock_ns(void);

#endif
