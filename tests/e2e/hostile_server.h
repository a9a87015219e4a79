/*
 * A daemon that lies: a thread that speaks the protocol, or nearly, and keeps what it was asked and
 * what it has said, byte for byte. It serves one connection after the other.
 */
#ifndef TESTS_E2E_HOSTILE_SERVER_H
#define TESTS_E2E_HOSTILE_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/prng.h"

enum { HOSTILE_LINES = 4096, HOSTILE_BYTES = 1 << 20, HOSTILE_LINE = 4096 };

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

struct hostile_server {
    pthread_t thread;
    int listening;
    int bell[2]; /* closed to have the thread end */
    const char *path;
    pthread_mutex_t mutex;
    /* Below: by the mutex. */
    struct lie lie;
    struct prng prng;
    unsigned tokens;
    unsigned connections;
    struct {
        uint64_t id; /* the number that is its tag */
        int64_t seen_ns;
        char text[512];
    } asked[HOSTILE_LINES];
    unsigned asked_count;
    char said[HOSTILE_BYTES]; /* ends with NUL; what was said to one connection is ended by LF */
    size_t said_len;
};

void hostile_start(struct hostile_server *hostile_server, const char *path);
void hostile_stop(struct hostile_server *hostile_server);

/* From now on it lies like this; what it was asked and has said is forgotten. */
void hostile_set(struct hostile_server *hostile_server, const struct lie *lie);

/* Has it been asked this? The text begins behind the tag. */
bool hostile_was_asked(struct hostile_server *hostile_server, const char *text);

/* What it was asked with this number, and when it had read that. */
bool hostile_request(struct hostile_server *hostile_server, uint64_t id, char *text,
                     int64_t *seen_ns);

/* The lines with this tag that it has said so far, each passed on behind the tag. */
void hostile_each_answer(struct hostile_server *hostile_server, uint64_t id,
                         void (*line)(void *context, const char *text), void *context);

/* Nanoseconds of CLOCK_BOOTTIME. */
int64_t hostile_clock_ns(void);

#endif
