/*
 * A hostile server: a thread that takes the place of the daemon. It sends correct or faulty
 * replies, as its plan says, and serves one connection at a time. It records the requests that it
 * receives and the bytes that it sends, except those of HOSTILE_FLOOD, until its buffers are full.
 */
#ifndef TESTS_E2E_HOSTILE_SERVER_H
#define TESTS_E2E_HOSTILE_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/prng.h"

enum { HOSTILE_LINES = 4096, HOSTILE_BYTES = 1 << 20, HOSTILE_LINE = 4096 };

enum hostile_kind {
    /* Correct replies. */
    HOSTILE_NONE,
    HOSTILE_CUT,    /* the first `at` bytes of a reply that is longer, then a close */
    HOSTILE_SPLIT,  /* the reply in two pieces, split at byte `at` */
    HOSTILE_SILENT, /* no reply */
    HOSTILE_FLOOD,  /* endless lines without END for NODES, else endless warnings */
    HOSTILE_LONG,   /* a listing of `at` lines for NODES */
    HOSTILE_RANDOM, /* random faults, drawn from `seed` */
};

/* How the server replies. */
struct hostile_plan {
    enum hostile_kind kind;
    size_t at;
    uint64_t seed;
    int delay_ms;        /* before each reply */
    int64_t validity_ms; /* of a grant; 0: the requested TTL */
    int64_t elapsed_ms;
    const char *instead; /* reply to LOCK, EXTEND and LOCKS, without the tag */
    const char *before;  /* whole lines sent before each reply */
};

struct hostile_server {
    pthread_t thread;
    int listening;
    int stop_pipe[2]; /* closing the write end stops the thread */
    const char *path;
    pthread_mutex_t mutex;
    /* The fields below are guarded by the mutex. */
    struct hostile_plan plan;
    struct prng prng;
    unsigned tokens;
    unsigned connections;
    struct {
        uint64_t id; /* its tag */
        int64_t seen_ns;
        char text[512];
    } requests[HOSTILE_LINES];
    unsigned request_count;
    char sent[HOSTILE_BYTES]; /* ends with NUL; an LF separates connections */
    size_t sent_len;
};

void hostile_start(struct hostile_server *server, const char *path);
void hostile_stop(struct hostile_server *server);

/* Sets the behaviour from now on and forgets the recorded requests and replies. */
void hostile_set(struct hostile_server *server, const struct hostile_plan *plan);

/* True if the server has received this request. The text excludes the tag. */
bool hostile_received(struct hostile_server *server, const char *text);

/* Copies the request with this tag to `text`, and sets *seen_ns to the time when the server had
 * read it. False if no request has this tag. */
bool hostile_request(struct hostile_server *server, uint64_t id, char *text, int64_t *seen_ns);

/* Calls line() for each whole line with this tag that the server has sent so far. `text` excludes
 * the tag. */
void hostile_each_reply(struct hostile_server *server, uint64_t id,
                        void (*line)(void *context, const char *text), void *context);

/* Nanoseconds of CLOCK_BOOTTIME. */
int64_t hostile_clock_ns(void);

#endif
